/* The times of whole groups of the tape (docs/tape.md), whose operations a lane plays one after the other. */
#ifndef GROUPS_H
#define GROUPS_H

#include "histogram.h"

#include <stdbool.h>

struct groups {
  uint64_t length, ok;      /* length 0: groups are not timed */
  uint64_t place, began_ns; /* the next operation's place in its group; the begin of the group */
  bool whole;               /* all operations of the group so far were right and are counted */
  struct histogram times;
};

/* Note an operation: `ok` if it was right and counts, its begin and its end. */
static inline void groups_note(struct groups *groups, bool ok, uint64_t began_ns, uint64_t now_ns)
{
  if (!groups->length)
    return;
  if (groups->place == 0)
    groups->began_ns = began_ns, groups->whole = true;
  groups->whole &= ok;
  if (++groups->place < groups->length)
    return;
  groups->place = 0;
  groups->ok += groups->whole;
  if (groups->whole)
    histogram_record(&groups->times, now_ns - groups->began_ns);
}

/* A slice has ended: the group that it cuts does not count. */
static inline void groups_cut(struct groups *groups)
{
  groups->whole = false;
}

#endif
