/* The timeline of a window: the operations that ended in each of a thousand slices; a hundred slices are a section.
 *
 * All memory is allocated before the window, and an operation costs a comparison and two additions. Operations that
 * end after a late open loop's window have slices too; the last one has the rest. */
#ifndef TIMELINE_H
#define TIMELINE_H

#include <stdint.h>

enum { SECTIONS = 10, SECTION_SLICES = 100, SLICES = SECTIONS * SECTION_SLICES, MOST_SLICES = 4 * SLICES };

struct slice {
  uint64_t ok, response_ns;
};

struct timeline {
  uint64_t start_ns, slice_ns; /* 0: the window ends by a number of operations and has no slices */
  uint64_t end_ns;             /* the end of the current slice */
  uint32_t at;
  struct slice slices[MOST_SLICES];
};

/* Clear it for a window of `duration_ns`, or 0; timeline_start begins it. */
void timeline_clear(struct timeline *timeline, uint64_t duration_ns);
void timeline_start(struct timeline *timeline, uint64_t start_ns);

/* Go on to the slice of an instant, if the current one has ended. */
void timeline_advance(struct timeline *timeline, uint64_t now_ns);

/* The section of the current slice. */
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
