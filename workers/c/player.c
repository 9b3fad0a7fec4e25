/* One prepared trial: opens the client, starts and ends its lanes. */
#include "player.h"

#include <stdlib.h>
#include <string.h>

/* Lanes need a moment to be there before a window begins. */
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
  for (int kind = 0; kind < KINDS; kind++)
    if (p->tape->kinds >> kind & 1 || kind == KIND(SET, 0))
      for (int section = 0; section < SECTIONS; section++)
        lane->recorders[section][kind] = calloc(1, sizeof(struct recorder));
  return true;
}

struct player *player_open(const struct client *client, const struct setup *setup, struct tape *tape,
                           int over_fd, char *reason)
{
  struct player *p = calloc(1, sizeof *p);
  p->client = client, p->setup = setup, p->tape = tape, p->over_fd = over_fd;
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
    free(lane->operations), free(lane->used), free(lane->lag);
  }
  tape_close(p->tape);
  free(p->lanes), free(p);
}

static void begin_lane(struct lane *lane, uint64_t limit, uint64_t duration_ns)
{
  const struct player *p = lane->player;
  /* What the last run did not come to is empty, and takes no memory where none did. */
  for (unsigned section = 0; section <= timeline_section(&lane->timeline); section++)
    for (int kind = 0; kind < KINDS; kind++)
      if (lane->recorders[section][kind])
        memset(lane->recorders[section][kind], 0, sizeof(struct recorder));
  timeline_clear(&lane->timeline, duration_ns);
  lane->section = lane->recorders[0];
  if (p->client->begin)
    p->client->begin(lane->session, p->prefill);
  lane->limit = limit;
  lane->sent_ns = lane->ended_ns = lane->queued = lane->unsent = lane->barriers = 0;
  lane->done = lane->failed = lane->called_ns = 0;
  lane->reconnects_before = p->client->reconnects ? p->client->reconnects(lane->session) : 0;
  memset(lane->lag, 0, sizeof *lane->lag); /* their pages are there, too, before the window */
}

void player_start(struct player *p, bool prefill, int64_t ops, int64_t duration_ms, uint64_t start_unix_ns)
{
  kind_set quiet = 0xaaaaaaaaaaaaaaaa & p->tape->kinds;
  p->prefill = prefill, p->open_loop = p->tape->times && !prefill, p->quiet = quiet && !prefill;
  p->in_flight = 0;
  p->peak = 0;
  p->playing = p->lane_count;
  for (uint64_t t = 0; t < p->lane_count; t++) {
    uint64_t total = (uint64_t)ops, extra = t < total % p->lane_count;
    begin_lane(&p->lanes[t], ops == NO_LIMIT ? UINT64_MAX : total / p->lane_count + extra,
               duration_ms == NO_LIMIT ? 0 : (uint64_t)duration_ms * 1000000);
  }
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  uint64_t wall_ns = (uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec, ahead = START_AHEAD_NS;
  if (start_unix_ns > wall_ns + ahead)
    ahead = start_unix_ns - wall_ns;
  p->window.start_ns = clock_ns() + ahead;
  p->window.timeout_ns = p->setup->timeout_ms * 1000000;
  p->window.end_ns = duration_ms == NO_LIMIT ? UINT64_MAX / 2 : p->window.start_ns + (uint64_t)duration_ms * 1000000;
  p->window.stopped = false;
  for (uint64_t t = 0; t < p->lane_count; t++)
    timeline_start(&p->lanes[t].timeline, p->window.start_ns);
  for (uint64_t t = 0; t < p->lane_count; t++)
    if (pthread_create(&p->lanes[t].thread, NULL, lane_play, &p->lanes[t]))
      abort();
}

void player_stop(struct player *p)
{
  uint64_t now = clock_ns();
  if (now < p->window.end_ns)
    p->window.end_ns = now;
  p->window.stopped = true;
}

void player_join(struct player *p)
{
  for (uint64_t t = 0; t < p->lane_count; t++)
    pthread_join(p->lanes[t].thread, NULL);
}
