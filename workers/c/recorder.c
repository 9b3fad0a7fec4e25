/* Records the results of operations, and adds up the lanes' records. */
#include "recorder.h"

void recorder_note(struct recorder *t, const struct operation *op, struct verified verified, uint64_t service_ns)
{
  static const kind_set looks_up = IN_SET(GET) | IN_SET(GETS) | IN_SET(MGET) | IN_SET(GAT) | IN_SET(DELETE)
      | IN_SET(TOUCH) | IN_SET(CAS) | IN_SET(INCR) | IN_SET(DECR);
  t->attempts++;
  if (is_timed(verified.status))
    histogram_record(&t->service, service_ns);
  if (verified.status >= WRONG_VALUE) {
    t->faults[verified.status]++;
    return;
  }
  t->ok++;
  t->busy_ns += service_ns;
  t->keys += op->run;
  t->key_bytes += op->key_bytes;
  t->value_bytes += verified.value_bytes;
  t->not_stored += verified.status == NOT_STORED;
  if (looks_up >> op->kind & 1) {
    t->hits += verified.found;
    t->misses += op->run - verified.found;
  }
}

void recorder_add(struct recorder *to, const struct recorder *from)
{
  uint64_t *sum = (uint64_t *)to;
  const uint64_t *more = (const uint64_t *)from;
  for (size_t i = 0; i < sizeof *to / sizeof *sum; i++)
    sum[i] += more[i];
}
