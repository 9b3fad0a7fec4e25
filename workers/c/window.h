/* The begin and the end of a run, and waiting for an instant in it. */
#ifndef WINDOW_H
#define WINDOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Shared by the lanes of a run. `end_ns` moves to the past when the run is stopped. */
struct window {
  uint64_t start_ns, timeout_ns;
  uint64_t tape_start_ns; /* the instant at which the tape's time is 0 */
  _Atomic uint64_t end_ns;
  atomic_bool stopped;
};

static inline uint64_t clock_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct rusage;

/* Times of a run, or of all slices together. */
struct totals {
  uint64_t elapsed_ns, send_elapsed_ns;
  uint64_t user_ns, system_ns; /* CPU time of this process */
};

/* Add the CPU time since `before`. */
void totals_add_cpu(struct totals *totals, const struct rusage *before);

/* The time from one instant to another; 0 if the second is earlier. */
static inline uint64_t span(uint64_t from_ns, uint64_t until_ns)
{
  return until_ns > from_ns ? until_ns - from_ns : 0;
}

uint64_t window_end_ns(struct window *window);

/* A window that begins at an instant of the wall clock, but at the earliest `ahead_ns` from now. */
void window_begin(struct window *window, uint64_t start_unix_ns, uint64_t ahead_ns, uint64_t duration_ns);

/* End it now. */
void window_stop(struct window *window);

/* Wait for an instant. False if the run was stopped before it came. */
bool window_wait_until(uint64_t instant_ns, struct window *window);

#endif
