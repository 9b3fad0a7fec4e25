/* See window.h. */
#include "window.h"

#include <sys/resource.h>

/* A sleep ends some tens of µs late, so the last part of a wait polls the clock. */
static const uint64_t SPIN_NS = 60000;
/* A wait checks at this interval whether the run was stopped. */
static const uint64_t LOOK_NS = 20000000;

uint64_t window_end_ns(struct window *w)
{
  return atomic_load_explicit(&w->end_ns, memory_order_relaxed);
}

static uint64_t ns_between(struct timeval before, struct timeval after)
{
  return (uint64_t)((after.tv_sec - before.tv_sec) * 1000000000 + (after.tv_usec - before.tv_usec) * 1000);
}

void totals_add_cpu(struct totals *t, const struct rusage *before)
{
  struct rusage after;
  getrusage(RUSAGE_SELF, &after);
  t->user_ns += ns_between(before->ru_utime, after.ru_utime);
  t->system_ns += ns_between(before->ru_stime, after.ru_stime);
}

void window_begin(struct window *w, uint64_t start_unix_ns, uint64_t ahead_ns, uint64_t duration_ns)
{
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  uint64_t wall_ns = (uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec;
  if (start_unix_ns > wall_ns + ahead_ns)
    ahead_ns = start_unix_ns - wall_ns;
  w->tape_start_ns = w->start_ns = clock_ns() + ahead_ns;
  w->end_ns = w->start_ns + duration_ns;
  w->stopped = false;
}

void window_stop(struct window *w)
{
  uint64_t now = clock_ns();
  if (now < w->end_ns)
    w->end_ns = now;
  w->stopped = true;
}

bool window_wait_until(uint64_t instant_ns, struct window *w)
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
