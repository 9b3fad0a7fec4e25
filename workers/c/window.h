/* When a run begins, what ends it, and how to wait for an instant in it. */
#ifndef WINDOW_H
#define WINDOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Shared by the lanes of a run. `end_ns` moves to the past when the run is stopped. */
struct window {
  uint64_t start_ns, timeout_ns;
  _Atomic uint64_t end_ns;
  atomic_bool stopped;
};

static inline uint64_t clock_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t window_end_ns(struct window *window);

/* Wait for an instant. False if the run was stopped before it came. */
bool window_wait_until(uint64_t instant_ns, struct window *window);

#endif
