/* The measured loops. One lane is one thread with its session. */
#include "player.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A counter that only its lane writes. */
static void add_one(_Atomic uint64_t *counter)
{
  uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
  atomic_store_explicit(counter, value + 1, memory_order_relaxed);
}

static __attribute__((noinline, cold)) void note_failure(struct lane *lane, enum status status)
{
  add_one(&lane->failed);
  if (status > WRONG_VALUE)
    lane->player->tape->any_generation = true; /* if it was a write, it may still arrive */
}

/* A slice of the window has ended, and perhaps a section with it. */
static __attribute__((noinline)) void next_slice(struct lane *lane, uint64_t now)
{
  timeline_advance(&lane->timeline, now);
  lane->section = lane->recorders[timeline_section(&lane->timeline)];
}

void __attribute__((noinline)) lane_begin_counting(struct lane *lane, uint64_t since_ns)
{
  lane->section = lane->recorders[COUNTED];
  lane->counting = true;
  lane->counted_since_ns = since_ns;
  lane->lead_in_ok = lane->done;
  lane->lead_in_failed = lane->failed;
  lane->next_part_ns = lane->middle_ns;
}

/* With an operation, the lead-in or the first half of the counted part has ended. */
static void __attribute__((noinline)) end_part(struct lane *lane, uint64_t now)
{
  if (!lane->counting) {
    lane_begin_counting(lane, lane->player->in_process ? lane->next_part_ns : now);
    return;
  }
  lane->half_ended_ns = now;
  lane->half_played = lane->done + lane->failed;
  lane->next_part_ns = UINT64_MAX;
}

/* The times that only an open loop has. */
static inline void note_times(
    struct lane *lane, struct histogram *response, uint64_t due_ns, uint64_t began, uint64_t now)
{
  if (lane->counting)
    histogram_record(lane->lag, began - due_ns);
  if (response)
    histogram_record(response, now - due_ns);
}

static inline void note_end(struct lane *lane, int status)
{
  if (status < WRONG_VALUE)
    add_one(&lane->done);
  else
    note_failure(lane, status);
}

/* Play one operation; returns its end in ns. */
static inline uint64_t play_one(struct lane *lane, const struct operation *op, uint64_t due_ns)
{
  struct player *p = lane->player;
  struct answer answer;
  uint64_t began = clock_ns();
  atomic_store_explicit(&lane->called_ns, began, memory_order_relaxed);
  p->client->call(lane->session, op, &answer);
  uint64_t now = clock_ns();
  atomic_store_explicit(&lane->called_ns, 0, memory_order_relaxed);
  struct verified verified = verify(p->tape, op, &answer, lane->used);
  if (now - began >= p->window.timeout_ns)
    verified.status = FAULT_TIMEOUT;
  if (now >= lane->timeline.end_ns)
    next_slice(lane, now);
  struct recorder *recorder = lane->section[op->kind];
  recorder_note(recorder, op, verified, now - began);
  groups_note(lane->groups, lane->counting && verified.status < WRONG_VALUE, began, now);
  if (verified.status < WRONG_VALUE)
    timeline_note(&lane->timeline, now - (p->open_loop ? due_ns : began));
  if (p->open_loop) {
    note_times(lane, is_timed(verified.status) ? &recorder->response : NULL, due_ns, began, now);
    if (lane->calls.calls)
      call_log_note(&lane->calls, p->tape, op, &answer, verified, began, now, lane->used);
  }
  note_end(lane, verified.status);
  if (p->client->release)
    p->client->release(lane->session, &answer);
  return now;
}

/* Before a call, not timed: renew the connections after their last call. */
static void __attribute__((noinline)) renew(struct lane *lane)
{
  const struct client *client = lane->player->client;
  lane->called_ns = clock_ns();
  int answered = lane->player->quiet && client->barrier ? client->barrier(lane->session) : 0;
  lane->barriers += answered > 0 ? (uint64_t)answered : 0; /* operations without a reply have arrived */
  const unsigned opened = client->renew(lane->session);
  lane->renewed += opened;
  lane->failed_connects += lane->player->setup->server_count - opened;
  lane->called_ns = 0;
  lane->calls_made = 1;
}

static inline void make_ready(struct lane *lane)
{
  if (lane->calls_made++ == lane->player->reconnect_after)
    renew(lane);
}

static void play_closed(struct lane *lane)
{
  struct window *w = &lane->player->window;
  uint64_t now = clock_ns(), at = lane->next % lane->count, left = lane->limit;
  if (now >= lane->next_part_ns)
    lane_begin_counting(lane, lane->next_part_ns); /* it had no CPU until now */
  for (; left && now < window_end_ns(w); left--) {
    make_ready(lane);
    now = play_one(lane, &lane->operations[at], 0);
    if (++at == lane->count)
      at = 0;
    if (now >= lane->next_part_ns)
      end_part(lane, now);
  }
  lane->next += lane->limit - left;
  lane->sent_ns = lane->ended_ns = now;
}

static void play_prefill(struct lane *lane)
{
  struct player *p = lane->player;
  uint64_t now = clock_ns();
  for (uint64_t k = lane->place; k < p->tape->prefill_count && now < window_end_ns(&p->window); k += p->lanes_in_all) {
    struct operation op = tape_prefill(p->tape, (uint32_t)k);
    now = play_one(lane, &op, 0);
  }
  lane->sent_ns = lane->ended_ns = now;
}

/* The instant at which a lane's nth operation is due. */
static uint64_t due(const struct lane *lane, uint64_t n)
{
  const struct player *p = lane->player;
  const struct operation *op = &lane->operations[n % lane->count];
  return p->window.tape_start_ns + n / lane->count * p->tape->period_ns + p->tape->times[op->number];
}

/* Note operations that were due in the window and that will not be sent: they waited at least until now. */
static void note_unsent(struct lane *lane, uint64_t n)
{
  uint64_t now = clock_ns(), end = window_end_ns(&lane->player->window);
  for (; n < lane->limit && due(lane, n) < (end < now ? end : now); n++) {
    if (due(lane, n) >= lane->next_part_ns)
      lane_begin_counting(lane, due(lane, n));
    lane->unsent += lane->counting;
    histogram_record(&lane->section[lane->operations[n % lane->count].kind]->response, now - due(lane, n));
  }
  lane->next = n;
}

static void play_open(struct lane *lane)
{
  struct player *p = lane->player;
  struct window *w = &p->window;
  uint64_t now = 0;
  for (uint64_t n = lane->next; n < lane->limit; n++) {
    uint64_t due_ns = due(lane, n);
    make_ready(lane);
    if (due_ns >= window_end_ns(w) || !window_wait_until(due_ns, w)
        || clock_ns() >= window_end_ns(w) + (w->stopped ? 0 : 2 * w->timeout_ns)) {
      note_unsent(lane, n);
      break;
    }
    if (due_ns >= lane->next_part_ns)
      lane_begin_counting(lane, due_ns);
    lane->queued += lane->counting && now > due_ns; /* the call before took until after this one was due */
    uint64_t others = atomic_fetch_add(&p->in_flight, 1) + 1, peak = p->peak;
    while (others > peak && !atomic_compare_exchange_weak(&p->peak, &peak, others))
      ;
    now = play_one(lane, &lane->operations[n % lane->count], due_ns);
    atomic_fetch_sub(&p->in_flight, 1);
  }
  lane->sent_ns = lane->ended_ns = now ? now : w->start_ns;
}

/* Send a command with a reply after operations without one. */
static void end_quiet(struct lane *lane)
{
  const struct client *client = lane->player->client;
  if (!lane->done && !lane->failed)
    return;
  lane->called_ns = clock_ns();
  int answered = client->barrier ? client->barrier(lane->session) : 0;
  lane->called_ns = 0;
  if (answered < 0)
    fputs("no answer after the last operations without one\n", stderr);
  if (answered > 0) {
    lane->barriers += (uint64_t)answered;
    lane->ended_ns = clock_ns();
  }
}

void lane_play_window(struct lane *lane)
{
  struct player *p = lane->player;
  if (!window_wait_until(p->window.start_ns, &p->window) || !(p->prefill || lane->count))
    return;
  if (p->prefill)
    play_prefill(lane);
  else if (p->open_loop)
    play_open(lane);
  else
    play_closed(lane);
  if (p->quiet)
    end_quiet(lane);
}

void lane_tell_over(struct player *p)
{
  if (atomic_fetch_sub(&p->playing, 1) == 1 && write(p->over_fd, "", 1) != 1)
    abort();
}
