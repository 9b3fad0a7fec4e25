/* A window as it went: a thousand slices, what ended in each; a hundred of them are a section.
 *
 * All room is there before the window, and an operation costs a comparison and two additions. What
 * ends after the window, in an open loop that is late, has slices too; the last holds the rest. */
#ifndef TIMELINE_H
#define TIMELINE_H

#include <stdint.h>

enum { SECTIONS = 10, SECTION_SLICES = 100, SLICES = SECTIONS * SECTION_SLICES, MOST_SLICES = 4 * SLICES };

struct slice {
  uint64_t ok, response_ns;
};

struct timeline {
  uint64_t start_ns, slice_ns; /* 0: the window ends by a number of operations and has no slices */
  uint64_t end_ns;             /* of the slice that is going on */
  uint32_t at;
  struct slice slices[MOST_SLICES];
};

/* Of a window that lasts so long, or 0; it begins with timeline_start. */
void timeline_clear(struct timeline *timeline, uint64_t duration_ns);
void timeline_start(struct timeline *timeline, uint64_t start_ns);

/* Go on to the slice that an instant is in, where the one that was going on has ended. */
void timeline_advance(struct timeline *timeline, uint64_t now_ns);

/* The section of the slice that is going on. */
static inline unsigned timeline_section(const struct timeline *timeline)
{
  return timeline->at < SLICES ? timeline->at / SECTION_SLICES : SECTIONS - 1;
}

static inline void timeline_note(struct timeline *timeline, uint64_t response_ns)
{
  timeline->slices[timeline->at].ok++;
  timeline->slices[timeline->at].response_ns += response_ns;
}

void timeline_add(struct timeline *to, const struct timeline *from);

#endif
