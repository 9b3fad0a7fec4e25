/* The loops that are measured, and what is around them. One lane is one thread with its session. */
#include "player.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Lanes need a moment to be there before a window begins. */
static const uint64_t START_AHEAD_NS = 5000000;
/* A sleep is late by some tens of µs; the rest of a wait is spent asking the clock. */
static const uint64_t SPIN_NS = 60000;
/* A wait looks this often whether it is still wanted. */
static const uint64_t LOOK_NS = 20000000;

static uint64_t end_of(struct window *w)
{
  return atomic_load_explicit(&w->end_ns, memory_order_relaxed);
}

/* Wait for an instant. False if the run was stopped before it came. */
static bool wait_until(uint64_t instant_ns, struct window *w)
{
  for (;;) {
    uint64_t now = clock_ns();
    if (now >= instant_ns)
      return true;
    if (atomic_load_explicit(&w->stopped, memory_order_relaxed))
      return false;
    uint64_t left = instant_ns - now;
    if (left <= SPIN_NS)
      continue;
    left = left - SPIN_NS < LOOK_NS ? left - SPIN_NS : LOOK_NS;
    struct timespec pause = {0, (long)left};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
  }
}

/* A counter that only its lane writes. */
static void add_one(_Atomic uint64_t *counter)
{
  uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
  atomic_store_explicit(counter, value + 1, memory_order_relaxed);
}

/* A slice of the window has ended, and perhaps a section with it. */
static __attribute__((noinline)) void go_on(struct lane *lane, uint64_t now)
{
  course_advance(&lane->course, now);
  lane->section = lane->tallies[course_section(&lane->course)];
}

/* One operation; the instant of its end. */
static inline uint64_t play_one(struct lane *lane, const struct operation *op, uint64_t due_ns)
{
  struct player *p = lane->player;
  struct answer answer;
  uint64_t began = clock_ns();
  atomic_store_explicit(&lane->called_ns, began, memory_order_relaxed);
  p->client->call(lane->session, op, &answer);
  uint64_t now = clock_ns();
  atomic_store_explicit(&lane->called_ns, 0, memory_order_relaxed);
  struct verdict verdict = judge(p->tape, op, &answer, lane->used);
  if (now - began >= p->window.timeout_ns)
    verdict.ending = TIMED_OUT;
  if (now >= lane->course.end_ns)
    go_on(lane, now);
  struct tally *tally = lane->section[op->kind];
  tally_note(tally, op, verdict, now - began);
  if (verdict.ending < WRONG)
    course_note(&lane->course, now - (p->open_loop ? due_ns : began));
  if (p->open_loop) {
    histogram_record(lane->lag, began - due_ns);
    if (is_timed(verdict.ending))
      histogram_record(&tally->response, now - due_ns);
  }
  add_one(verdict.ending < WRONG ? &lane->done : &lane->failed);
  p->client->settle(lane->session, &answer);
  return now;
}

static void play_closed(struct lane *lane)
{
  struct window *w = &lane->player->window;
  uint64_t now = clock_ns(), at = 0;
  for (uint64_t left = lane->limit; left && now < end_of(w); left--) {
    now = play_one(lane, &lane->operations[at], 0);
    if (++at == lane->count)
      at = 0;
  }
  lane->sent_ns = lane->ended_ns = now;
}

static void play_prefill(struct lane *lane)
{
  struct player *p = lane->player;
  uint64_t now = clock_ns();
  for (uint64_t k = lane->place; k < p->tape->prefill_count && now < end_of(&p->window); k += p->lanes_in_all) {
    struct operation op = tape_prefill(p->tape, (uint32_t)k);
    now = play_one(lane, &op, 0);
  }
  lane->sent_ns = lane->ended_ns = now;
}

/* When a lane's nth operation is due. */
static uint64_t due(const struct lane *lane, uint64_t n)
{
  const struct player *p = lane->player;
  const struct operation *op = &lane->operations[n % lane->count];
  return p->window.start_ns + n / lane->count * p->tape->period_ns + p->tape->times[op->number];
}

/* Note what was due in the window and will not be sent: it waited at least until now. */
static void leave(struct lane *lane, uint64_t n)
{
  uint64_t now = clock_ns(), end = end_of(&lane->player->window);
  for (; n < lane->limit && due(lane, n) < (end < now ? end : now); n++) {
    lane->unsent++;
    histogram_record(&lane->section[lane->operations[n % lane->count].kind]->response, now - due(lane, n));
  }
}

static void play_open(struct lane *lane)
{
  struct player *p = lane->player;
  struct window *w = &p->window;
  uint64_t now = 0;
  for (uint64_t n = 0; n < lane->limit; n++) {
    uint64_t due_ns = due(lane, n);
    if (due_ns >= end_of(w) || !wait_until(due_ns, w)
        || clock_ns() >= end_of(w) + (w->stopped ? 0 : 2 * w->timeout_ns)) {
      leave(lane, n);
      break;
    }
    lane->bound += now > due_ns; /* the call before took until after this one was due */
    uint64_t others = atomic_fetch_add(&p->in_flight, 1) + 1, peak = p->peak;
    while (others > peak && !atomic_compare_exchange_weak(&p->peak, &peak, others))
      ;
    now = play_one(lane, &lane->operations[n % lane->count], due_ns);
    atomic_fetch_sub(&p->in_flight, 1);
  }
  lane->sent_ns = lane->ended_ns = now ? now : w->start_ns;
}

/* Operations without a reply are ended by a command that has one. */
static void end_quiet(struct lane *lane)
{
  const struct client *client = lane->player->client;
  if (!lane->done && !lane->failed)
    return;
  lane->called_ns = clock_ns();
  int answered = client->barrier(lane->session);
  lane->called_ns = 0;
  if (answered < 0)
    fputs("no answer after the last operations without one\n", stderr);
  if (answered > 0) {
    lane->barriers = (uint64_t)answered;
    lane->ended_ns = clock_ns();
  }
}

static void *play(void *argument)
{
  struct lane *lane = argument;
  struct player *p = lane->player;
  prctl(PR_SET_TIMERSLACK, 1);
  if (wait_until(p->window.start_ns, &p->window) && (p->prefill || lane->count)) {
    if (p->prefill)
      play_prefill(lane);
    else if (p->open_loop)
      play_open(lane);
    else
      play_closed(lane);
    if (p->quiet)
      end_quiet(lane);
  }
  if (atomic_fetch_sub(&p->playing, 1) == 1 && write(p->over_fd, "", 1) != 1)
    abort();
  return NULL;
}

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
        lane->tallies[section][kind] = calloc(1, sizeof(struct tally));
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
        free(lane->tallies[section][kind]);
    free(lane->operations), free(lane->used), free(lane->lag);
  }
  tape_close(p->tape);
  free(p->lanes), free(p);
}

static void begin_lane(struct lane *lane, uint64_t limit, uint64_t duration_ns)
{
  const struct player *p = lane->player;
  /* What the last run did not come to is empty, and takes no memory where none did. */
  for (unsigned section = 0; section <= course_section(&lane->course); section++)
    for (int kind = 0; kind < KINDS; kind++)
      if (lane->tallies[section][kind])
        memset(lane->tallies[section][kind], 0, sizeof(struct tally));
  course_clear(&lane->course, duration_ns);
  lane->section = lane->tallies[0];
  p->client->begin(lane->session, p->prefill);
  lane->limit = limit;
  lane->sent_ns = lane->ended_ns = lane->bound = lane->unsent = lane->barriers = 0;
  lane->done = lane->failed = lane->called_ns = 0;
  lane->reconnects_before = p->client->reconnects(lane->session);
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
    course_start(&p->lanes[t].course, p->window.start_ns);
  for (uint64_t t = 0; t < p->lane_count; t++)
    if (pthread_create(&p->lanes[t].thread, NULL, play, &p->lanes[t]))
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
