/* The worker for memcached clients in C: `worker CLIENT` speaks the worker protocol (PROTOCOL.md).
 *
 *   worker.c   requests in, answers out      lane.c       the measured loops
 *   prepare.c  the request `prepare`       window.c     when a run begins and ends
 *   client.c   the registry of clients       verify.c     the result of a reply
 *   client.h   what a client file gives      recorder.c   the records, and their sums
 *   player.c   one prepared trial            histogram.c  HdrHistogram
 *   slices.c   short turns of a player       messages.c   answers, as they are sent
 *   tape.c     the tape, checked             timeline.c   the window in slices and sections
 *   groups.h   the times of whole groups     call_log.c   a record of each call
 *   base64.c   bytes as text
 *   clients/   one file for each library     README.md    what a client file must contain
 *
 * This thread reads stdin, reports progress and waits; each lane has its own thread. */
#include "messages.h"
#include "prepare.h"

#include <errno.h>
#include <gnu/libc-version.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const uint64_t PROGRESS_NS = 1000000000;
/* A call that outlasts every time-out by this much will never return. */
static const uint64_t LOST_NS = 5000000000;

static const struct client *client;
static FILE *out;
static int over[2]; /* a pipe: the last lane writes a byte when it ends */
static struct player *player;
static struct setup setup;
static json_t *setup_request; /* owns the texts of `setup` */

static void send_answer(json_t *message)
{
  json_dumpf(message, out, JSON_COMPACT);
  fputc('\n', out);
  fflush(out);
  json_decref(message);
}

static char *grown(char *buffer, size_t bytes)
{
  char *larger = realloc(buffer, bytes);
  if (!larger)
    abort();
  return larger;
}

/* A line of stdin, or null at its end. The rest stays for the next call. */
static char *next_line(bool wait, bool *ended)
{
  static char *buffer;
  static size_t size, used, taken;
  memmove(buffer, buffer + taken, used -= taken);
  taken = 0;
  for (;;) {
    char *newline = used ? memchr(buffer, '\n', used) : NULL;
    if (newline) {
      *newline = 0;
      taken = (size_t)(newline - buffer) + 1;
      return buffer;
    }
    struct pollfd in = {0, POLLIN, 0};
    if (!wait && poll(&in, 1, 0) == 0)
      return NULL;
    if (used + 4096 > size)
      buffer = grown(buffer, size = 2 * size + 8192);
    ssize_t got = read(0, buffer + used, 4096);
    if (got > 0) {
      used += (size_t)got;
    } else if (got == 0 || errno != EINTR) {
      *ended = true;
      return NULL;
    }
  }
}

static json_t *hello(void)
{
  json_t *capabilities = json_array();
  char words[TEXT_SIZE], *rest = words;
  snprintf(words, sizeof words, "%s", client->capabilities);
  for (char *word; (word = strsep(&rest, " "));)
    json_array_append_new(capabilities, json_string(word));
  json_array_append_new(capabilities, json_string("slices"));
  json_array_append_new(capabilities, json_string("timeline"));
  json_array_append_new(capabilities, json_string("groups"));
  json_array_append_new(capabilities, json_string("calls"));
  for (int kind = 0; kind < KINDS; kind++)
    if (client->kinds & every_kind() & (kind_set)1 << kind)
      json_array_append_new(capabilities, json_string(kind_name(kind)));
  char id[64], runtime[128];
  snprintf(id, sizeof id, "c/%s", client->name);
  snprintf(runtime, sizeof runtime, "gcc %s, glibc %s", __VERSION__, gnu_get_libc_version());
  return json_pack("{ss si ss ss ss ss ss so}", "type", "ready", "protocol", 2, "client", id, "library",
      client->library, "library_version", client->version(), "language", "c", "runtime", runtime, "capabilities",
      capabilities);
}

static void close_player(void)
{
  if (!player)
    return;
  slices_end(player);
  player_close(player);
  player = NULL;
}

static json_t *prepare(json_t *request)
{
  char text[TEXT_SIZE] = "";
  if (!read_setup(request, &setup, text))
    return error_message("protocol", text, true);
  json_decref(setup_request);
  setup_request = json_incref(request);
  close_player();
  const char *path = json_string_value(json_object_get(request, "tape"));
  struct tape *tape = tape_open(path, text, sizeof text);
  if (!tape)
    return error_message("tape", text, true);
  refuse(client, &setup, tape, text);
  if (*text) {
    tape_close(tape);
    return json_pack("{ss ss+}", "type", "unsupported", "reason", client->name, text);
  }
  player = player_open(client, &setup, tape, over[1], text);
  return player ? json_pack("{ss}", "type", "ready") : error_message("connect", text, true);
}

/* Whether a call of the library has not returned for too long. */
static bool is_lost(void)
{
  for (uint64_t t = 0; t < player->lane_count; t++) {
    uint64_t called = player->lanes[t].called_ns;
    if (called && clock_ns() > called + 2 * player->window.timeout_ns + LOST_NS)
      return true;
  }
  return false;
}

static void send_progress(void)
{
  uint64_t ops = 0, errors = 0;
  for (uint64_t t = 0; t < player->lane_count; t++)
    ops += player->lanes[t].done, errors += player->lanes[t].failed;
  send_answer(json_pack("{ss sI sI}", "type", "progress", "ops", (json_int_t)ops, "errors", (json_int_t)errors));
}

static const char *type_of(json_t *request)
{
  const char *type = json_string_value(json_object_get(request, "type"));
  return type ? type : "";
}

/* The requests while a run goes on; true for `bye`. */
static bool listen_in(void)
{
  bool ended = false, bye = false;
  for (char *line; (line = next_line(false, &ended));) {
    json_t *request = json_loads(line, 0, NULL);
    const char *type = type_of(request);
    bye |= !strcmp(type, "bye");
    if (!strcmp(type, "stop") || bye)
      window_stop(&player->window);
    else
      send_answer(error_message("protocol", "a run is going on", true));
    json_decref(request);
  }
  if (ended)
    _exit(0); /* the orchestrator is gone, and a call of the library may never return */
  return bye;
}

/* Wait for the lanes. False if one is lost. */
static bool wait_for_lanes(bool tells_progress, bool *bye)
{
  uint64_t next = clock_ns() + PROGRESS_NS;
  struct pollfd sources[2] = {{0, POLLIN, 0}, {over[0], POLLIN, 0}};
  *bye |= listen_in(); /* requests that arrived together with the run */
  for (;;) {
    uint64_t now = clock_ns();
    if (poll(sources, 2, next > now ? (int)((next - now) / 1000000 + 1) : 0) < 0)
      continue;
    if (sources[0].revents)
      *bye |= listen_in();
    char byte;
    if (sources[1].revents && read(over[0], &byte, 1) == 1)
      return true;
    if (clock_ns() >= next) {
      if (tells_progress)
        send_progress();
      next += PROGRESS_NS;
      if (is_lost())
        return false;
    }
  }
}

static json_t *lost(void)
{
  player = NULL; /* keep its memory: one of its threads never returns */
  return error_message("client", "a call of the library does not return", false);
}

/* Write the call log that a run asked for. Null, or an error. */
static json_t *write_calls(const char *path)
{
  if (!*path || call_log_write(path, player))
    return NULL;
  return error_message("internal", "the call log cannot be written", true);
}

/* A limit of a run, or NO_LIMIT. */
static int64_t limit_of(json_t *request, const char *name)
{
  json_t *limit = json_object_get(request, name);
  return json_is_integer(limit) ? json_integer_value(limit) : NO_LIMIT;
}

/* Whether a run has a limit below 0. */
static bool is_negative(json_t *request, const char *name)
{
  return json_integer_value(json_object_get(request, name)) < 0;
}

/* Why a run cannot be played; null if it can. */
static const char *refused_run(json_t *request)
{
  const char *phase = json_string_value(json_object_get(request, "phase"));
  if (!player)
    return "run before prepare";
  if (!phase || (strcmp(phase, "prefill") && strcmp(phase, "warmup") && strcmp(phase, "measure")))
    return "an unknown phase";
  return is_negative(request, "ops") || is_negative(request, "duration_ms") ? "a run of less than nothing" : NULL;
}

static json_t *run(json_t *request, bool *bye)
{
  const char *refused = refused_run(request);
  if (refused)
    return error_message("protocol", refused, true);
  const char *phase = json_string_value(json_object_get(request, "phase"));
  const char *asked = json_string_value(json_object_get(request, "calls")), *calls = asked ? asked : "";
  json_int_t start = json_integer_value(json_object_get(request, "start_unix_ns"));
  slices_end(player);
  struct rusage before;
  getrusage(RUSAGE_SELF, &before);
  player_start(player, !strcmp(phase, "prefill"), limit_of(request, "ops"), limit_of(request, "duration_ms"),
      start > 0 ? (uint64_t)start : 0, *calls);
  bool ended = wait_for_lanes(true, bye);
  json_t *failed = write_calls(calls);
  if (!ended) {
    json_decref(failed);
    return lost();
  }
  player_join(player);
  if (failed)
    return failed;
  struct totals totals = player_totals(player);
  totals_add_cpu(&totals, &before);
  return done_message(player, phase, &totals);
}

static json_t *begin_slices(bool *bye)
{
  if (!player)
    return error_message("protocol", "begin_slices before prepare", true);
  slices_begin(player);
  return wait_for_lanes(false, bye) ? json_pack("{ss}", "type", "ready") : lost();
}

static json_t *slice(json_t *request, bool *bye)
{
  if (!player || !player->slices.open)
    return error_message("protocol", "slice without begin_slices", true);
  json_int_t length_us = json_integer_value(json_object_get(request, "length_us"));
  json_int_t lead_in_us = json_integer_value(json_object_get(request, "lead_in_us"));
  json_int_t start = json_integer_value(json_object_get(request, "start_unix_ns"));
  if (length_us < 0 || lead_in_us < 0 || lead_in_us > length_us)
    return error_message("protocol", "a slice whose lead-in is not a part of it", true);
  slices_play(player, (uint64_t)length_us, (uint64_t)lead_in_us, start > 0 ? (uint64_t)start : 0);
  return wait_for_lanes(false, bye) ? slice_message(slices_result(player)) : lost();
}

static json_t *end_slices(void)
{
  if (!player || !player->slices.open)
    return error_message("protocol", "end_slices without begin_slices", true);
  slices_end(player);
  return done_message(player, "measure", &player->slices.totals);
}

static bool serve_one(const char *line)
{
  json_t *request = json_loads(line, 0, NULL);
  const char *type = type_of(request);
  bool bye = !strcmp(type, "bye");
  if (!strcmp(type, "hello"))
    send_answer(hello());
  else if (!strcmp(type, "prepare"))
    send_answer(prepare(request));
  else if (!strcmp(type, "run"))
    send_answer(run(request, &bye));
  else if (!strcmp(type, "begin_slices"))
    send_answer(begin_slices(&bye));
  else if (!strcmp(type, "slice"))
    send_answer(slice(request, &bye));
  else if (!strcmp(type, "end_slices"))
    send_answer(end_slices());
  else if (!bye && strcmp(type, "stop"))
    send_answer(error_message("protocol", "not a request", true));
  json_decref(request);
  return !bye;
}

int main(int argc, char **argv)
{
  client = argc == 2 ? find_client(argv[1]) : NULL;
  if (!client) {
    fprintf(stderr, "worker CLIENT: one of %s\n", client_names());
    return 2;
  }
  /* Stdout is for the protocol only, even if a library prints. */
  out = fdopen(dup(1), "w");
  if (!out || dup2(2, 1) < 0 || pipe(over))
    return 1;
  bool ended = false;
  for (char *line; (line = next_line(true, &ended)) && serve_one(line);)
    ;
  close_player();
  return 0;
}
