/* The call log of docs/call-log.md: a record of each call of an open loop, written after the run. */
#ifndef CALL_LOG_H
#define CALL_LOG_H

#include "verify.h"

#include <stdatomic.h>

enum { MOST_WRONG_REPLIES = 16, MOST_WRONG_BYTES = 4096 };

/* A record, with the layout of the file. */
struct call {
  uint64_t begin_ns, duration_ns;
  uint32_t record, value_bytes;
  uint16_t caller;
  uint8_t outcome, zero[5];
};
_Static_assert(sizeof(struct call) == 32, "as docs/call-log.md defines it");

/* The library's result for a read whose value was wrong. */
struct wrong_reply {
  uint32_t record;
  size_t length;
  uint8_t value[MOST_WRONG_BYTES];
};

/* The calls of one lane. */
struct call_log {
  struct call *calls; /* null unless the run asked for a call log */
  struct wrong_reply *wrong;
  uint32_t most, wrong_count;
  uint16_t caller;
  _Atomic uint32_t count; /* read by the main thread, also while a call of the lane hangs */
};

/* Allocate memory for the calls of one of `callers`, before the window. */
void call_log_open(struct call_log *log, uint64_t caller, uint64_t callers);
void call_log_close(struct call_log *log);

/* Note a call that has ended. The answer is not yet released; `used` is as in verify(). */
void call_log_note(struct call_log *log, const struct tape *tape, const struct operation *op,
    const struct answer *answer, struct verified verified, uint64_t began_ns, uint64_t now_ns, uint8_t *used);

struct player;

/* Write the calls of all lanes. False if the file cannot be written. */
bool call_log_write(const char *path, const struct player *player);

#endif
