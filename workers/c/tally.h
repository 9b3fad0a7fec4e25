/* What a lane notes of its operations, kind by kind. */
#ifndef TALLY_H
#define TALLY_H

#include "client.h"
#include "histogram.h"

struct tally {
  uint64_t attempts, ok, hits, misses, not_stored, keys, value_bytes, key_bytes, busy_ns;
  uint64_t endings[ENDINGS];  /* of those that failed, from WRONG on */
  struct histogram service;
  struct histogram response;  /* used in an open loop; in a closed one it would be the same samples */
};

/* What an answer comes to: the ending that is noted, the keys found, the value bytes moved. */
struct verdict {
  enum ending ending;
  uint32_t found;
  uint64_t value_bytes;
};

/* `used` has room for a mark for each key of a run. */
struct verdict judge(const struct tape *tape, const struct operation *op, const struct answer *answer,
                     uint8_t *used);

void tally_note(struct tally *tally, const struct operation *op, struct verdict verdict,
                uint64_t service_ns);

/* Whether the time of an operation belongs into the histograms. */
static inline bool is_timed(enum ending ending)
{
  return ending < WRONG || ending == TIMED_OUT;
}

void tally_add(struct tally *to, const struct tally *from);

#endif
