/* See messages.h. */
#include "messages.h"
#include "base64.h"

#include <stdlib.h>
#include <string.h>

static const char *const ERRORS[STATUSES] = {[FAULT_TIMEOUT] = "timeout",
    [FAULT_CONNECTION] = "connection",
    [FAULT_SERVER] = "server",
    [FAULT_CLIENT] = "client",
    [FAULT_PROTOCOL] = "protocol"};

json_t *error_message(const char *kind, const char *text, bool definite)
{
  return json_pack("{ss ss ss sb}", "type", "error", "kind", kind, "text", text, "definite", definite);
}

static void set_histogram(json_t *object, const char *name, const struct histogram *histogram)
{
  char *encoded = histogram_encode(histogram);
  json_object_set_new(object, name, encoded ? json_string(encoded) : json_null());
  free(encoded);
}

/* The counts of a kind of operation. */
static json_t *counts_message(const struct recorder *t)
{
  json_t *errors = json_object();
  for (int status = FAULT_TIMEOUT; status < STATUSES; status++)
    if (t->faults[status])
      json_object_set_new(errors, ERRORS[status], json_integer((json_int_t)t->faults[status]));
  return json_pack("{sI sI sI sI sI sI sI sI sI sI so}", "attempts", (json_int_t)t->attempts, "ok", (json_int_t)t->ok,
      "hits", (json_int_t)t->hits, "misses", (json_int_t)t->misses, "not_stored", (json_int_t)t->not_stored,
      "wrong_values", (json_int_t)t->faults[WRONG_VALUE], "keys", (json_int_t)t->keys, "value_bytes",
      (json_int_t)t->value_bytes, "key_bytes", (json_int_t)t->key_bytes, "busy_ns", (json_int_t)t->busy_ns, "errors",
      errors);
}

/* The operations in the sections `first` to `last` of all lanes, by kind. */
static json_t *operations_message(const struct player *p, unsigned first, unsigned last, bool histograms)
{
  json_t *operations = json_object();
  struct recorder *sum = malloc(sizeof *sum);
  for (int kind = 0; kind < KINDS; kind++) {
    memset(sum, 0, sizeof *sum);
    for (uint64_t t = 0; t < p->lane_count; t++)
      for (unsigned s = first; s <= last; s++)
        if (p->lanes[t].recorders[s][kind])
          recorder_add(sum, p->lanes[t].recorders[s][kind]);
    if (!sum->attempts && !(histograms && histogram_any(&sum->response)))
      continue;
    json_t *message = counts_message(sum);
    if (histograms) {
      set_histogram(message, "service", &sum->service);
      set_histogram(message, "response", p->open_loop ? &sum->response : &sum->service);
    }
    json_object_set_new(operations, kind_name(kind), message);
  }
  free(sum);
  return operations;
}

/* The response times of a section, of all lanes and kinds. */
static json_t *section_message(const struct player *player, unsigned section)
{
  static struct histogram sum;
  memset(&sum, 0, sizeof sum);
  for (uint64_t t = 0; t < player->lane_count; t++)
    for (int kind = 0; kind < KINDS; kind++) {
      const struct recorder *recorder = player->lanes[t].recorders[section][kind];
      if (recorder && section <= timeline_section(&player->lanes[t].timeline))
        histogram_add(&sum, player->open_loop ? &recorder->response : &recorder->service);
    }
  char *encoded = histogram_encode(&sum);
  json_t *message = encoded ? json_string(encoded) : json_null();
  free(encoded);
  return message;
}

/* The timeline of all lanes, and the sections that it consists of. */
static void set_timeline(json_t *message, const struct player *player)
{
  static struct timeline sum;
  sum = player->lanes[0].timeline;
  for (uint64_t t = 1; t < player->lane_count; t++)
    timeline_add(&sum, &player->lanes[t].timeline);
  if (!sum.slice_ns)
    return;
  json_t *ok = json_array(), *response = json_array();
  json_int_t in_section[SECTIONS] = {0};
  for (uint32_t i = 0; i <= sum.at; i++) {
    json_array_append_new(ok, json_integer((json_int_t)sum.slices[i].ok));
    json_array_append_new(response, json_integer((json_int_t)sum.slices[i].response_ns));
    in_section[i < SLICES ? i / SECTION_SLICES : SECTIONS - 1] += (json_int_t)sum.slices[i].ok;
  }
  json_object_set_new(message, "timeline",
      json_pack("{sI so so}", "slice_ns", (json_int_t)sum.slice_ns, "ok", ok, "response_ns", response));
  json_t *oks = json_array(), *responses = json_array();
  for (unsigned section = 0; section < SECTIONS; section++) {
    json_array_append_new(oks, json_integer(in_section[section]));
    json_array_append_new(responses, section_message(player, section));
  }
  json_object_set_new(message, "sections",
      json_pack(
          "{sI so so}", "length_ns", (json_int_t)sum.slice_ns * SECTION_SLICES, "ok", oks, "response", responses));
}

/* The groups of all lanes; null if they are not timed. */
static json_t *groups_message(const struct player *p)
{
  static struct groups sum;
  memset(&sum, 0, sizeof sum);
  for (uint64_t t = 0; t < p->lane_count; t++) {
    sum.length = p->lanes[t].groups->length;
    sum.ok += p->lanes[t].groups->ok;
    histogram_add(&sum.times, &p->lanes[t].groups->times);
  }
  if (!sum.length)
    return json_null();
  json_t *message = json_pack("{sI sI}", "length", (json_int_t)sum.length, "ok", (json_int_t)sum.ok);
  set_histogram(message, "time", &sum.times);
  return message;
}

/* The first wrong values of a run with a call log. */
static json_t *wrong_replies_message(const struct player *p)
{
  json_t *replies = json_array();
  for (uint64_t t = 0; t < p->lane_count; t++)
    for (uint32_t i = 0; i < p->lanes[t].calls.wrong_count && json_array_size(replies) < MOST_WRONG_REPLIES; i++) {
      const struct wrong_reply *wrong = &p->lanes[t].calls.wrong[i];
      char *value = base64(wrong->value, wrong->length);
      json_array_append_new(replies, json_pack("{sI ss}", "record", (json_int_t)wrong->record, "value", value));
      free(value);
    }
  return replies;
}

json_t *slice_message(struct slice_result slice)
{
  return json_pack("{ss sI sI sI sI sI sI}", "type", "slice_done", "ops", (json_int_t)slice.ops, "errors",
      (json_int_t)slice.errors, "lead_in_ops", (json_int_t)slice.lead_in_ops, "elapsed_ns",
      (json_int_t)slice.elapsed_ns, "half_ops", (json_int_t)slice.half_ops, "half_ns", (json_int_t)slice.half_ns);
}

/* The last section in use of all lanes. */
static unsigned last_section(const struct player *p)
{
  unsigned last = 0;
  for (uint64_t t = 0; t < p->lane_count; t++) {
    unsigned section = timeline_section(&p->lanes[t].timeline);
    last = section > last ? section : last;
  }
  return last;
}

json_t *done_message(const struct player *p, const char *phase, const struct totals *totals)
{
  uint64_t queued = 0, unsent = 0, reconnects = 0, renewed = 0, failed = 0, barriers = 0;
  static struct histogram lag;
  memset(&lag, 0, sizeof lag);
  for (uint64_t t = 0; t < p->lane_count; t++) {
    const struct lane *lane = &p->lanes[t];
    queued += lane->queued, unsent += lane->unsent, barriers += lane->barriers, renewed += lane->renewed,
        failed += lane->failed_connects;
    if (p->client->reconnects)
      reconnects += p->client->reconnects(lane->session) - lane->reconnects_before;
    histogram_add(&lag, lane->lag);
  }
  json_t *message = json_pack("{ss ss sI sI so sI sI sI sI sI sI sI sI sI}", "type", "done", "phase", phase,
      "elapsed_ns", (json_int_t)totals->elapsed_ns, "send_elapsed_ns", (json_int_t)totals->send_elapsed_ns,
      "operations", operations_message(p, 0, last_section(p), true), "max_in_flight", (json_int_t)p->peak, "queued",
      (json_int_t)queued, "unsent", (json_int_t)unsent, "reconnects", (json_int_t)reconnects, "renewed",
      (json_int_t)renewed, "failed_connects", (json_int_t)failed, "barriers", (json_int_t)barriers, "cpu_user_ns",
      (json_int_t)totals->user_ns, "cpu_system_ns", (json_int_t)totals->system_ns);
  set_histogram(message, "send_lag", &lag);
  json_object_set_new(message, "groups", groups_message(p));
  json_object_set_new(message, "wrong_replies", wrong_replies_message(p));
  set_timeline(message, p);
  if (p->slices.played)
    json_object_set_new(message, "lead_in", operations_message(p, LEAD_IN, LEAD_IN, false));
  return message;
}
