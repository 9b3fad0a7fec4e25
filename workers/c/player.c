/* One prepared trial: opens the client, starts and ends its lanes. */
#include "player.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* The time that lanes need to be ready before a window begins. */
static const uint64_t START_AHEAD_NS = 5000000;

static bool open_lane(struct player *p, struct lane *lane, uint64_t t, char *reason)
{
  lane->player = p;
  lane->place = p->setup->share * p->lane_count + t;
  if (!(lane->session = p->client->open(p->setup, p->tape, reason)))
    return false;
  lane->operations = tape_lane(p->tape, lane->place, p->lanes_in_all, &lane->count);
  lane->used = calloc(p->tape->longest_run + 1, 1);
  lane->lag = calloc(1, sizeof *lane->lag);
  lane->groups = calloc(1, sizeof *lane->groups);
  for (int kind = 0; kind < KINDS; kind++)
    if (p->tape->kinds >> kind & 1 || kind == KIND(SET, 0))
      for (int section = 0; section < SECTIONS; section++)
        lane->recorders[section][kind] = calloc(1, sizeof(struct recorder));
  return true;
}

struct player *player_open(
    const struct client *client, const struct setup *setup, struct tape *tape, int over_fd, char *reason)
{
  struct player *p = calloc(1, sizeof *p);
  p->client = client, p->setup = setup, p->tape = tape, p->over_fd = over_fd;
  /* An operation without a reply, or outstanding with others, could be overtaken on its way. */
  bool in_turn = setup->depth == 1 && !(tape->kinds >> KIND(SET, 1) & 1);
  bool in_order = in_turn || has_word(client->capabilities, "in_order");
  bool own = setup->server_count > 0 && setup->connections <= setup->threads;
  if (!own || !in_order || !is_common(setup) || tape->lanes != setup->shares * setup->threads)
    tape->any_generation = true; /* operations may overtake each other, or the generations are for other lanes */
  const char *after = option_value(setup, "reconnect_after", NULL);
  p->reconnect_after = after ? strtoull(after, NULL, 10) : UINT64_MAX;
  p->lane_count = setup->threads;
  p->lanes_in_all = setup->shares * setup->threads;
  p->lanes = aligned_alloc(64, p->lane_count * sizeof *p->lanes);
  memset(p->lanes, 0, p->lane_count * sizeof *p->lanes);
  for (uint64_t t = 0; t < p->lane_count; t++)
    if (!open_lane(p, &p->lanes[t], t, reason)) {
      player_close(p);
      return NULL;
    }
  return p;
}

void player_close(struct player *p)
{
  for (uint64_t t = 0; t < p->lane_count; t++) {
    struct lane *lane = &p->lanes[t];
    if (lane->session)
      p->client->close(lane->session);
    for (int section = 0; section < SECTIONS; section++)
      for (int kind = 0; kind < KINDS; kind++)
        free(lane->recorders[section][kind]);
    call_log_close(&lane->calls);
    free(lane->operations), free(lane->used), free(lane->lag), free(lane->groups);
  }
  tape_close(p->tape);
  free(p->lanes), free(p);
}

static void begin_lane(struct lane *lane, uint64_t limit, uint64_t duration_ns)
{
  const struct player *p = lane->player;
  /* Sections that no run has reached take no memory; this clears only the others. */
  unsigned last = timeline_section(&lane->timeline);
  for (unsigned section = 0; section <= (last < LEAD_IN && p->slices.played ? LEAD_IN : last); section++)
    for (int kind = 0; kind < KINDS; kind++)
      if (lane->recorders[section][kind])
        memset(lane->recorders[section][kind], 0, sizeof(struct recorder));
  timeline_clear(&lane->timeline, duration_ns);
  lane->section = lane->recorders[COUNTED];
  lane->counting = true;
  lane->next_part_ns = UINT64_MAX;
  lane->next = 0;
  if (p->client->begin)
    p->client->begin(lane->session, p->prefill);
  lane->limit = limit;
  lane->sent_ns = lane->ended_ns = lane->queued = lane->unsent = lane->barriers = lane->renewed =
      lane->failed_connects = 0;
  lane->done = lane->failed = lane->called_ns = 0;
  lane->reconnects_before = p->client->reconnects ? p->client->reconnects(lane->session) : 0;
  memset(lane->groups, 0, sizeof *lane->groups);
  lane->groups->length = p->tape->group > 1 && !p->prefill && !p->open_loop ? p->tape->group : 0;
  call_log_close(&lane->calls);
  memset(lane->lag, 0, sizeof *lane->lag); /* this also allocates their pages before the window */
}

void player_reset(struct player *p, bool prefill, int64_t ops, int64_t duration_ms)
{
  kind_set quiet = 0xaaaaaaaaaaaaaaaa & p->tape->kinds;
  if (prefill && p->prefilled)
    p->tape->any_generation = true; /* the earlier prefill failed, and its writes may still arrive */
  p->prefilled |= prefill;
  p->prefill = prefill, p->open_loop = p->tape->times && !prefill, p->quiet = quiet && !prefill;
  p->in_process = !p->setup->server_count;
  p->in_flight = 0;
  p->peak = 0;
  p->window.timeout_ns = p->setup->timeout_ms * 1000000;
  for (uint64_t t = 0; t < p->lane_count; t++) {
    uint64_t total = (uint64_t)ops, extra = t < total % p->lane_count;
    begin_lane(&p->lanes[t], ops == NO_LIMIT ? UINT64_MAX : total / p->lane_count + extra,
        duration_ms == NO_LIMIT ? 0 : (uint64_t)duration_ms * 1000000);
  }
  p->slices.played = false;
}

/* The thread of a lane that plays a run. */
static void *play_run(void *lane)
{
  prctl(PR_SET_TIMERSLACK, 1);
  lane_play_window(lane);
  lane_tell_over(((struct lane *)lane)->player);
  return NULL;
}

void player_start(
    struct player *p, bool prefill, int64_t ops, int64_t duration_ms, uint64_t start_unix_ns, bool logs_calls)
{
  player_reset(p, prefill, ops, duration_ms);
  for (uint64_t t = 0; logs_calls && p->open_loop && t < p->lane_count; t++)
    call_log_open(&p->lanes[t].calls, t, p->lane_count);
  p->playing = p->lane_count;
  window_begin(&p->window, start_unix_ns, START_AHEAD_NS,
      duration_ms == NO_LIMIT ? UINT64_MAX / 2 : (uint64_t)duration_ms * 1000000);
  for (uint64_t t = 0; t < p->lane_count; t++)
    timeline_start(&p->lanes[t].timeline, p->window.start_ns);
  for (uint64_t t = 0; t < p->lane_count; t++)
    if (pthread_create(&p->lanes[t].thread, NULL, play_run, &p->lanes[t]))
      abort();
}

void player_join(struct player *p)
{
  for (uint64_t t = 0; t < p->lane_count; t++)
    pthread_join(p->lanes[t].thread, NULL);
}

struct totals player_totals(struct player *p)
{
  uint64_t sent_ns = 0, ended_ns = 0, played = 0;
  for (uint64_t t = 0; t < p->lane_count; t++) {
    const struct lane *lane = &p->lanes[t];
    sent_ns = lane->sent_ns > sent_ns ? lane->sent_ns : sent_ns;
    ended_ns = lane->ended_ns > ended_ns ? lane->ended_ns : ended_ns;
    played += lane->done + lane->failed > 0;
  }
  if (!p->open_loop)
    p->peak = played; /* a lane that plays is always in a call */
  return (struct totals){span(p->window.start_ns, ended_ns), span(p->window.start_ns, sent_ns), 0, 0};
}
