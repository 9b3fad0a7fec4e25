/* See slices.h. Between slices the lanes' threads wait on a futex; nothing is allocated. */
#include "slices.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Wait for the next slice; its number. */
static uint32_t wait_for_turn(struct slices *s, uint32_t seen)
{
  while (atomic_load(&s->turn) == seen)
    syscall(SYS_futex, &s->turn, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
  return seen + 1;
}

static void wake_lanes(struct slices *s)
{
  atomic_fetch_add(&s->turn, 1);
  syscall(SYS_futex, &s->turn, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* The thread of a lane that plays slices. */
static void *play_slices(void *argument)
{
  struct lane *lane = argument;
  struct player *p = lane->player;
  prctl(PR_SET_TIMERSLACK, 1);
  for (uint32_t turn = 0;;) {
    lane_tell_over(p);
    turn = wait_for_turn(&p->slices, turn);
    if (p->slices.ending)
      return NULL;
    lane_play_window(lane);
  }
}

void slices_begin(struct player *p)
{
  slices_end(p);
  player_reset(p, false, NO_LIMIT, NO_LIMIT);
  p->slices = (struct slices){.open = true, .played = true};
  p->playing = p->lane_count;
  for (uint64_t t = 0; t < p->lane_count; t++) {
    struct lane *lane = &p->lanes[t];
    timeline_start(&lane->timeline, 0);
    for (int kind = 0; kind < KINDS; kind++)
      if (lane->recorders[LEAD_IN][kind])
        memset(lane->recorders[LEAD_IN][kind], 0, sizeof(struct recorder));
    if (pthread_create(&lane->thread, NULL, play_slices, lane))
      abort();
  }
}

static void begin_lane_slice(struct lane *lane)
{
  const struct slices *s = &lane->player->slices;
  const uint64_t start_ns = lane->player->window.start_ns;
  lane->done = lane->failed = 0;
  lane->section = lane->recorders[LEAD_IN];
  lane->counting = false;
  groups_cut(lane->groups);
  lane->next_part_ns = s->lead_in_ns < s->length_ns ? start_ns + s->lead_in_ns : UINT64_MAX;
  lane->middle_ns = lane->player->open_loop ? UINT64_MAX : start_ns + (s->lead_in_ns + s->length_ns) / 2;
  lane->half_ended_ns = 0;
}

void slices_play(struct player *p, uint64_t length_us, uint64_t lead_in_us, uint64_t start_unix_ns)
{
  struct slices *s = &p->slices;
  getrusage(RUSAGE_SELF, &s->before);
  s->length_ns = length_us * 1000;
  s->lead_in_ns = lead_in_us * 1000;
  window_begin(&p->window, start_unix_ns, 0, s->length_ns);
  p->window.tape_start_ns -= s->tape_ns;
  for (uint64_t t = 0; t < p->lane_count; t++)
    begin_lane_slice(&p->lanes[t]);
  p->playing = p->lane_count;
  wake_lanes(s);
}

/* When the lane's counted part began. */
static uint64_t counted_since(const struct lane *lane)
{
  return lane->counting ? lane->counted_since_ns : lane->next_part_ns;
}

/* The length of the first half: to its last completion; without one, to the middle. */
static uint64_t half_ns(struct lane *lane)
{
  const uint64_t end_ns = window_end_ns(&lane->player->window);
  const uint64_t middle_ns = lane->middle_ns < end_ns ? lane->middle_ns : end_ns;
  return span(counted_since(lane), lane->half_ended_ns ? lane->half_ended_ns : middle_ns);
}

/* The length of the lane's counted part: at least to the slice's end, to include time without a CPU. */
static uint64_t counted_ns(struct lane *lane)
{
  const uint64_t since_ns = counted_since(lane);
  const uint64_t end_ns = window_end_ns(&lane->player->window);
  const bool played = lane->done + lane->failed;
  return span(since_ns, played && lane->ended_ns > end_ns ? lane->ended_ns : end_ns);
}

/* The length of the counted part, and of its first half: the means over the lanes with operations. */
static void mean_times(struct player *p, struct slice_result *sum)
{
  uint64_t callers = 0, played = 0;
  for (uint64_t t = 0; t < p->lane_count; t++) {
    sum->elapsed_ns += p->lanes[t].count ? counted_ns(&p->lanes[t]) : 0;
    sum->half_ns += p->lanes[t].count ? half_ns(&p->lanes[t]) : 0;
    callers += p->lanes[t].count > 0;
    played += p->lanes[t].done + p->lanes[t].failed > 0;
  }
  p->peak = played > p->peak ? played : p->peak;
  sum->elapsed_ns /= callers ? callers : 1;
  sum->half_ns /= callers ? callers : 1;
}

struct slice_result slices_result(struct player *p)
{
  struct slices *s = &p->slices;
  struct slice_result sum = {0};
  for (uint64_t t = 0; t < p->lane_count; t++) {
    const struct lane *lane = &p->lanes[t];
    const uint64_t lead_in_ok = lane->counting ? lane->lead_in_ok : lane->done;
    const uint64_t lead_in_failed = lane->counting ? lane->lead_in_failed : lane->failed;
    sum.lead_in_ops += lead_in_ok + lead_in_failed;
    sum.ops += lane->done - lead_in_ok;
    sum.errors += lane->failed - lead_in_failed;
    if (!p->open_loop)
      sum.half_ops +=
          (lane->half_ended_ns ? lane->half_played : lane->done + lane->failed) - lead_in_ok - lead_in_failed;
  }
  const uint64_t end_ns = window_end_ns(&p->window);
  s->tape_ns += span(p->window.start_ns, end_ns);
  if (p->open_loop)
    sum.elapsed_ns = span(p->window.start_ns + s->lead_in_ns, end_ns);
  else
    mean_times(p, &sum);
  s->totals.elapsed_ns += sum.elapsed_ns;
  s->totals.send_elapsed_ns += sum.elapsed_ns;
  totals_add_cpu(&s->totals, &s->before);
  return sum;
}

void slices_end(struct player *p)
{
  if (!p->slices.open)
    return;
  p->slices.ending = true;
  wake_lanes(&p->slices);
  player_join(p);
  p->slices.open = false;
}
