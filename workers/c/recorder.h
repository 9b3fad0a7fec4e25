/* What a lane notes of its operations, kind by kind. */
#ifndef RECORDER_H
#define RECORDER_H

#include "histogram.h"
#include "verify.h"

struct recorder {
  uint64_t attempts, ok, hits, misses, not_stored, keys, value_bytes, key_bytes, busy_ns;
  uint64_t faults[STATUSES]; /* of those that failed, from WRONG_VALUE on */
  struct histogram service;
  struct histogram response; /* used in an open loop; in a closed one it would be the same samples */
};

void recorder_note(
    struct recorder *recorder, const struct operation *op, struct verified verified, uint64_t service_ns);

void recorder_add(struct recorder *to, const struct recorder *from);

#endif
