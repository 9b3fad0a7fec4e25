/* Verifies replies, byte by byte. */
#include "verify.h"

#include <string.h>

static bool right_only(const struct tape *tape, const struct operation *op, const struct item *item)
{
  if (!tape->verified)
    return true;
  if (op->verb != CAS && item->length == op->length && memcmp(op->value, item->value, item->length) == 0)
    return true;
  return tape_right(tape, op->indexes[0], item->value, item->length, op->generation);
}

/* The position of a found key in its run: replies come in order, if from several servers in turns. */
static uint32_t position(const struct operation *op, const struct item *item, uint32_t from, uint8_t *used)
{
  for (uint32_t i = 0; i < op->run; i++) {
    uint32_t at = from + i < op->run ? from + i : from + i - op->run;
    if (!used[at] && op->key_lengths[at] == item->key_length && memcmp(op->keys[at], item->key, item->key_length) == 0)
      return at;
  }
  return op->run;
}

static struct verified verify_run(
    const struct tape *tape, const struct operation *op, const struct answer *answer, uint8_t *used)
{
  struct verified verified = {READ, 0, 0};
  uint32_t next = 0;
  memset(used, 0, op->run);
  for (uint32_t i = 0; i < answer->count; i++) {
    const struct item *item = &answer->items[i];
    uint32_t at = position(op, item, next, used);
    if (at == op->run)
      return (struct verified){WRONG_VALUE, 0, 0};
    uint8_t told = at == 0 ? op->generation : 0; /* the record tells the generation of the first key */
    if (tape->verified && !tape_right(tape, op->indexes[at], item->value, item->length, told))
      return (struct verified){WRONG_VALUE, 0, 0};
    used[at] = 1;
    next = at + 1 < op->run ? at + 1 : 0;
    verified.found++;
    verified.value_bytes += item->length;
  }
  return verified;
}

static struct verified verify_write(const struct operation *op, const struct answer *answer)
{
  struct verified verified = {answer->status, 0, 0};
  switch (op->verb) {
  case SET:
  case ADD:
  case REPLACE:
  case MSET:
    verified.value_bytes = answer->status == DONE ? op->value_bytes : 0;
    if (answer->status == MISSED) /* the binary wire's answer to a `replace` of a missing key */
      verified.status = op->verb == SET ? FAULT_SERVER : NOT_STORED;
    if (answer->status == NOT_STORED && op->verb == SET)
      verified.status = FAULT_SERVER;
    break;
  case DELETE:
  case TOUCH:
  case INCR:
  case DECR:   verified.found = answer->status == DONE && !op->noreply; break;
  default:     break;
  }
  return verified;
}

struct verified verify(const struct tape *tape, const struct operation *op, const struct answer *answer, uint8_t *used)
{
  if (answer->status >= WRONG_VALUE)
    return (struct verified){answer->status, 0, 0};
  if (op->verb == MGET)
    return verify_run(tape, op, answer, used);
  if (op->verb != CAS && answer->status != READ)
    return verify_write(op, answer);
  struct verified verified = {answer->status, answer->status == MISSED ? 0 : answer->count, 0};
  if (answer->count && !right_only(tape, op, &answer->items[0]))
    return (struct verified){WRONG_VALUE, 0, 0};
  if (answer->count)
    verified.value_bytes = answer->items[0].length;
  if (op->verb == CAS)
    verified.value_bytes = answer->status == DONE ? op->length : 0;
  return verified;
}
