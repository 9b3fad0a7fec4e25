/* The result of a reply. */
#ifndef VERIFY_H
#define VERIFY_H

#include "client.h"

/* The result of an answer: the status, the number of keys found, the value bytes read or written. */
struct verified {
  enum status status;
  uint32_t found;
  uint64_t value_bytes;
};

/* `used` has room for a mark for each key of a run. */
struct verified verify(const struct tape *tape, const struct operation *op, const struct answer *answer, uint8_t *used);

/* Whether histograms include the time of an operation. */
static inline bool is_timed(enum status status)
{
  return status < WRONG_VALUE || status == FAULT_TIMEOUT;
}

#endif
