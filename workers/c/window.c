/* See window.h. */
#include "window.h"

/* A sleep is late by some tens of µs; the rest of a wait is spent asking the clock. */
static const uint64_t SPIN_NS = 60000;
/* A wait looks this often whether it is still wanted. */
static const uint64_t LOOK_NS = 20000000;

uint64_t window_end_ns(struct window *w)
{
  return atomic_load_explicit(&w->end_ns, memory_order_relaxed);
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
