/* See call_log.h. */
#include "player.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CALLS = 1 << 20, CALL_OK = 0, CALL_MISS = 1, CALL_WRONG = 2 };

void call_log_open(struct call_log *log, uint64_t caller, uint64_t callers)
{
  log->most = (uint32_t)(MOST_CALLS / callers);
  log->caller = (uint16_t)caller;
  log->calls = calloc(log->most, sizeof *log->calls);
  log->wrong = calloc(MOST_WRONG_REPLIES, sizeof *log->wrong);
}

void call_log_close(struct call_log *log)
{
  free(log->calls), free(log->wrong);
  *log = (struct call_log){0};
}

static uint8_t outcome(const struct operation *op, struct verified verified)
{
  static const kind_set reads = IN_SET(GET) | IN_SET(GETS) | IN_SET(MGET) | IN_SET(GAT);
  if (verified.status >= WRONG_VALUE) /* from there on, outcomes have the order of the statuses */
    return (uint8_t)(verified.status - WRONG_VALUE + CALL_WRONG);
  return reads >> op->kind & 1 && !verified.found ? CALL_MISS : CALL_OK;
}

/* The first wrong item of an answer. */
static const struct item *wrong_item(
    const struct tape *tape, const struct operation *op, const struct answer *answer, uint8_t *used)
{
  struct answer part = *answer;
  for (part.count = 1; part.count < answer->count; part.count++)
    if (verify(tape, op, &part, used).status == WRONG_VALUE)
      break;
  return &answer->items[part.count - 1];
}

void call_log_note(struct call_log *log, const struct tape *tape, const struct operation *op,
    const struct answer *answer, struct verified verified, uint64_t began_ns, uint64_t now_ns, uint8_t *used)
{
  uint32_t at = atomic_load_explicit(&log->count, memory_order_relaxed);
  if (at == log->most)
    return;
  log->calls[at] = (struct call){
      .begin_ns = began_ns,
      .duration_ns = now_ns - began_ns,
      .record = op->number,
      .value_bytes = verified.status < WRONG_VALUE ? (uint32_t)verified.value_bytes : 0,
      .caller = log->caller,
      .outcome = outcome(op, verified),
  };
  atomic_store_explicit(&log->count, at + 1, memory_order_release);
  if (verified.status != WRONG_VALUE || log->wrong_count == MOST_WRONG_REPLIES)
    return;
  struct wrong_reply *wrong = &log->wrong[log->wrong_count++];
  wrong->record = op->number;
  if (answer->status < WRONG_VALUE && answer->count) {
    const struct item *item = wrong_item(tape, op, answer, used);
    wrong->length = item->length < MOST_WRONG_BYTES ? item->length : MOST_WRONG_BYTES;
    memcpy(wrong->value, item->value, wrong->length);
  }
}

bool call_log_write(const char *path, const struct player *p)
{
  static const struct {
    char magic[8];
    uint32_t version, record_bytes;
  } header = {"CMCALLS", 1, sizeof(struct call)};
  FILE *file = fopen(path, "wb");
  if (!file)
    return false;
  fwrite(&header, sizeof header, 1, file);
  for (uint64_t t = 0; t < p->lane_count; t++) {
    const struct call_log *log = &p->lanes[t].calls;
    fwrite(log->calls, sizeof *log->calls, atomic_load_explicit(&log->count, memory_order_acquire), file);
  }
  bool failed = ferror(file);
  return fclose(file) == 0 && !failed;
}
