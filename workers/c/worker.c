/* The worker for memcached clients in C: `worker CLIENT` speaks the worker protocol (PROTOCOL.md).
 *
 *   worker.c   requests in, answers out      lane.c       the measured loops
 *   prepare.c  what `prepare` asks for       window.c     when a run begins and ends
 *   client.c   the registry of clients       verify.c     what a reply comes to
 *   client.h   what a client file gives      recorder.c   what is recorded, and its sums
 *   player.c   one prepared trial            histogram.c  HdrHistogram
 *   tape.c     the tape, checked             timeline.c   the window in slices and sections
 *   clients/   one file for each library     README.md    what a client file has to hold
 *
 * This thread reads stdin, tells progress and waits; lanes are threads of their own. */
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
/* A call that outlasts every time-out by this much will not come back. */
static const uint64_t LOST_NS = 5000000000;

static const char *const ERRORS[STATUSES] = {[FAULT_TIMEOUT] = "timeout", [FAULT_CONNECTION] = "connection",
    [FAULT_SERVER] = "server", [FAULT_CLIENT] = "client", [FAULT_PROTOCOL] = "protocol"};

static const struct client *client;
static FILE *out;
static int over[2];  /* a pipe: the last lane says that it is done */
static struct player *player;
static struct setup setup;
static json_t *setup_request;  /* holds the words of `setup` */

static void send_answer(json_t *message)
{
  json_dumpf(message, out, JSON_COMPACT);
  fputc('\n', out);
  fflush(out);
  json_decref(message);
}

static json_t *failed(const char *kind, const char *text, bool definite)
{
  return json_pack("{ss ss ss sb}", "type", "error", "kind", kind, "text", text, "definite", definite);
}

/* A line of stdin, or null at its end. What follows it stays for the next call. */
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
      buffer = realloc(buffer, size = 2 * size + 8192);
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
  json_array_append_new(capabilities, json_string("timeline"));
  for (int kind = 0; kind < KINDS; kind++)
    if (client->kinds & every_kind() & (kind_set)1 << kind)
      json_array_append_new(capabilities, json_string(kind_name(kind)));
  char id[64], runtime[128];
  snprintf(id, sizeof id, "c/%s", client->name);
  snprintf(runtime, sizeof runtime, "gcc %s, glibc %s", __VERSION__, gnu_get_libc_version());
  return json_pack("{ss si ss ss ss ss ss so}", "type", "ready", "protocol", 2, "client", id,
                   "library", client->library, "library_version", client->version(),
                   "language", "c", "runtime", runtime, "capabilities", capabilities);
}

static json_t *prepare(json_t *request)
{
  char text[TEXT_SIZE] = "";
  if (!read_setup(request, &setup, text))
    return failed("protocol", text, true);
  json_decref(setup_request);
  setup_request = json_incref(request);
  if (player)
    player_close(player);
  player = NULL;
  const char *path = json_string_value(json_object_get(request, "tape"));
  struct tape *tape = tape_open(path, text, sizeof text);
  if (!tape)
    return failed("tape", text, true);
  refuse(client, &setup, tape, text);
  if (*text) {
    tape_close(tape);
    return json_pack("{ss ss+}", "type", "unsupported", "reason", client->name, text);
  }
  player = player_open(client, &setup, tape, over[1], text);
  return player ? json_pack("{ss}", "type", "ready") : failed("connect", text, true);
}

static void set_histogram(json_t *object, const char *name, const struct histogram *histogram)
{
  char *encoded = histogram_encode(histogram);
  json_object_set_new(object, name, encoded ? json_string(encoded) : json_null());
  free(encoded);
}

static json_t *operation_message(const struct recorder *t, bool open_loop)
{
  json_t *errors = json_object();
  for (int status = FAULT_TIMEOUT; status < STATUSES; status++)
    if (t->faults[status])
      json_object_set_new(errors, ERRORS[status], json_integer((json_int_t)t->faults[status]));
  json_t *message = json_pack(
      "{sI sI sI sI sI sI sI sI sI sI so}", "attempts", (json_int_t)t->attempts, "ok", (json_int_t)t->ok,
      "hits", (json_int_t)t->hits, "misses", (json_int_t)t->misses, "not_stored", (json_int_t)t->not_stored,
      "wrong_values", (json_int_t)t->faults[WRONG_VALUE], "keys", (json_int_t)t->keys, "value_bytes",
      (json_int_t)t->value_bytes, "key_bytes", (json_int_t)t->key_bytes, "busy_ns", (json_int_t)t->busy_ns,
      "errors", errors);
  set_histogram(message, "service", &t->service);
  set_histogram(message, "response", open_loop ? &t->response : &t->service);
  return message;
}

static json_t *operations_message(void)
{
  json_t *operations = json_object();
  struct recorder *sum = malloc(sizeof *sum);
  for (int kind = 0; kind < KINDS; kind++) {
    memset(sum, 0, sizeof *sum);
    for (uint64_t t = 0; t < player->lane_count; t++)
      for (unsigned s = 0; s <= timeline_section(&player->lanes[t].timeline); s++)
        if (player->lanes[t].recorders[s][kind])
          recorder_add(sum, player->lanes[t].recorders[s][kind]);
    if (sum->attempts || histogram_any(&sum->response))
      json_object_set_new(operations, kind_name(kind), operation_message(sum, player->open_loop));
  }
  free(sum);
  return operations;
}

/* The response times of a section, of all lanes and kinds. */
static json_t *section_message(unsigned section)
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
static void set_timeline(json_t *message)
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
  json_object_set_new(message, "timeline", json_pack("{sI so so}", "slice_ns", (json_int_t)sum.slice_ns,
                                                   "ok", ok, "response_ns", response));
  json_t *oks = json_array(), *responses = json_array();
  for (unsigned section = 0; section < SECTIONS; section++) {
    json_array_append_new(oks, json_integer(in_section[section]));
    json_array_append_new(responses, section_message(section));
  }
  json_object_set_new(message, "sections", json_pack("{sI so so}", "length_ns",
      (json_int_t)sum.slice_ns * SECTION_SLICES, "ok", oks, "response", responses));
}

static json_int_t span(uint64_t from, uint64_t until)
{
  return until > from ? (json_int_t)(until - from) : 0;
}

static json_int_t cpu_ns(struct timeval before, struct timeval after)
{
  return (after.tv_sec - before.tv_sec) * 1000000000LL + (after.tv_usec - before.tv_usec) * 1000LL;
}

static json_t *done(const char *phase, const struct rusage *before)
{
  struct rusage after;
  getrusage(RUSAGE_SELF, &after);
  uint64_t sent = 0, ended = 0, queued = 0, unsent = 0, reconnects = 0, barriers = 0, playing = 0;
  static struct histogram lag;
  memset(&lag, 0, sizeof lag);
  for (uint64_t t = 0; t < player->lane_count; t++) {
    const struct lane *lane = &player->lanes[t];
    sent = lane->sent_ns > sent ? lane->sent_ns : sent;
    ended = lane->ended_ns > ended ? lane->ended_ns : ended;
    queued += lane->queued, unsent += lane->unsent, barriers += lane->barriers;
    if (client->reconnects)
      reconnects += client->reconnects(lane->session) - lane->reconnects_before;
    playing += lane->done + lane->failed > 0;
    histogram_add(&lag, lane->lag);
  }
  uint64_t start = player->window.start_ns;
  json_t *message = json_pack(
      "{ss ss sI sI so sI sI sI sI sI sI sI}", "type", "done", "phase", phase, "elapsed_ns", span(start, ended),
      "send_elapsed_ns", span(start, sent), "operations", operations_message(), "max_in_flight",
      (json_int_t)(player->open_loop ? player->peak : playing), "queued", (json_int_t)queued, "unsent",
      (json_int_t)unsent, "reconnects", (json_int_t)reconnects, "barriers", (json_int_t)barriers,
      "cpu_user_ns", cpu_ns(before->ru_utime, after.ru_utime), "cpu_system_ns",
      cpu_ns(before->ru_stime, after.ru_stime));
  set_histogram(message, "send_lag", &lag);
  set_timeline(message);
  return message;
}

/* Whether a call of the library has not come back for too long. */
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

/* What is asked while a run goes on; true for `bye`. */
static bool listen_in(void)
{
  bool ended = false, bye = false;
  for (char *line; (line = next_line(false, &ended));) {
    json_t *request = json_loads(line, 0, NULL);
    const char *type = type_of(request);
    bye |= !strcmp(type, "bye");
    if (!strcmp(type, "stop") || bye)
      player_stop(player);
    else
      send_answer(failed("protocol", "a run is going on", true));
    json_decref(request);
  }
  if (ended)
    _exit(0); /* nobody is left to tell, and a call of the library may not come back */
  return bye;
}

/* Wait for the lanes. False if one is lost. */
static bool wait_for_lanes(bool *bye)
{
  uint64_t next = clock_ns() + PROGRESS_NS;
  struct pollfd sources[2] = {{0, POLLIN, 0}, {over[0], POLLIN, 0}};
  *bye |= listen_in(); /* what came together with the run */
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
      send_progress();
      next += PROGRESS_NS;
      if (is_lost())
        return false;
    }
  }
}

static json_t *run(json_t *request, bool *bye)
{
  if (!player)
    return failed("protocol", "run before prepare", true);
  const char *phase = json_string_value(json_object_get(request, "phase"));
  json_t *ops = json_object_get(request, "ops"), *duration = json_object_get(request, "duration_ms");
  json_int_t start = json_integer_value(json_object_get(request, "start_unix_ns"));
  bool prefill = phase && !strcmp(phase, "prefill");
  if (!phase || (!prefill && strcmp(phase, "warmup") && strcmp(phase, "measure")))
    return failed("protocol", "no phase that it knows", true);
  if ((json_is_integer(ops) && json_integer_value(ops) < 0)
      || (json_is_integer(duration) && json_integer_value(duration) < 0))
    return failed("protocol", "a run of less than nothing", true);
  struct rusage before;
  getrusage(RUSAGE_SELF, &before);
  player_start(player, prefill, json_is_integer(ops) ? json_integer_value(ops) : NO_LIMIT,
               json_is_integer(duration) ? json_integer_value(duration) : NO_LIMIT,
               start > 0 ? (uint64_t)start : 0);
  if (!wait_for_lanes(bye)) {
    player = NULL; /* with a thread in it that is not coming back */
    return failed("client", "a call of the library does not return", false);
  }
  player_join(player);
  return done(phase, &before);
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
  else if (!bye && strcmp(type, "stop"))
    send_answer(failed("protocol", "not a request", true));
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
  /* Stdout is the protocol's alone, whatever a library prints. */
  out = fdopen(dup(1), "w");
  if (!out || dup2(2, 1) < 0 || pipe(over))
    return 1;
  bool ended = false;
  for (char *line; (line = next_line(true, &ended)) && serve_one(line);)
    ;
  if (player)
    player_close(player);
  return 0;
}
