/* The results of a lane's operations, for each kind. */
#ifndef RECORDER_H
#define RECORDER_H

#include "histogram.h"
#include "verify.h"

struct recorder {
  uint64_t attempts, ok, hits, misses, not_stored, keys, value_bytes, key_bytes, busy_ns;
  uint64_t faults[STATUSES]; /* failed operations by status, from WRONG_VALUE on */
  struct histogram service;
  struct histogram response; /* only in an open loop; in a closed loop it would equal `service` */
};

void recorder_note(
    struct recorder *recorder, const struct operation *op, struct verified verified, uint64_t service_ns);

void recorder_add(struct recorder *to, const struct recorder *from);

#endif
