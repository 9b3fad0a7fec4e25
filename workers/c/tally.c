/* Judges answers, byte by byte, and notes what they come to. */
#include "tally.h"

#include <string.h>

/* Whether a value is right for a key, at whatever length it was written. */
static bool right(const struct tape *tape, uint32_t key, const char *value, size_t length)
{
  const char *expected = tape_value(tape, key, length);
  return expected && memcmp(expected, value, length) == 0;
}

static bool right_only(const struct tape *tape, const struct operation *op, const struct item *item)
{
  if (!tape->verified)
    return true;
  if (op->verb != CAS && item->length == op->length)
    return memcmp(op->value, item->value, item->length) == 0;
  return right(tape, op->indexes[0], item->value, item->length);
}

/* The position of a found key in its run: replies come in order, if from several servers in turns. */
static uint32_t position(const struct operation *op, const struct item *item, uint32_t from, uint8_t *used)
{
  for (uint32_t i = 0; i < op->run; i++) {
    uint32_t at = from + i < op->run ? from + i : from + i - op->run;
    if (!used[at] && op->key_lengths[at] == item->key_length
        && memcmp(op->keys[at], item->key, item->key_length) == 0)
      return at;
  }
  return op->run;
}

static struct verdict judge_run(const struct tape *tape, const struct operation *op,
                                const struct answer *answer, uint8_t *used)
{
  struct verdict verdict = {READ, 0, 0};
  uint32_t next = 0;
  memset(used, 0, op->run);
  for (uint32_t i = 0; i < answer->count; i++) {
    const struct item *item = &answer->items[i];
    uint32_t at = position(op, item, next, used);
    if (at == op->run)
      return (struct verdict){WRONG, 0, 0};
    if (tape->verified && !right(tape, op->indexes[at], item->value, item->length))
      return (struct verdict){WRONG, 0, 0};
    used[at] = 1;
    next = at + 1 < op->run ? at + 1 : 0;
    verdict.found++;
    verdict.value_bytes += item->length;
  }
  return verdict;
}

static struct verdict judge_write(const struct operation *op, const struct answer *answer)
{
  struct verdict verdict = {answer->ending, 0, 0};
  switch (op->verb) {
  case SET: case ADD: case REPLACE: case MSET:
    verdict.value_bytes = answer->ending == DONE ? op->value_bytes : 0;
    if (answer->ending == MISSED) /* what the binary wire says to a `replace` of nothing */
      verdict.ending = op->verb == SET ? SERVER_FAILED : NOT_STORED;
    if (answer->ending == NOT_STORED && op->verb == SET)
      verdict.ending = SERVER_FAILED;
    break;
  case DELETE: case TOUCH: case INCR: case DECR:
    verdict.found = answer->ending == DONE && !op->noreply;
    break;
  default:
    break;
  }
  return verdict;
}

struct verdict judge(const struct tape *tape, const struct operation *op, const struct answer *answer,
                     uint8_t *used)
{
  if (answer->ending >= WRONG)
    return (struct verdict){answer->ending, 0, 0};
  if (op->verb == MGET)
    return judge_run(tape, op, answer, used);
  if (op->verb != CAS && answer->ending != READ)
    return judge_write(op, answer);
  struct verdict verdict = {answer->ending, answer->ending == MISSED ? 0 : answer->count, 0};
  if (answer->count && !right_only(tape, op, &answer->items[0]))
    return (struct verdict){WRONG, 0, 0};
  if (answer->count)
    verdict.value_bytes = answer->items[0].length;
  if (op->verb == CAS)
    verdict.value_bytes = answer->ending == DONE ? op->length : 0;
  return verdict;
}

void tally_note(struct tally *t, const struct operation *op, struct verdict verdict, uint64_t service_ns)
{
  static const kind_set looks_up = IN_SET(GET) | IN_SET(GETS) | IN_SET(MGET) | IN_SET(GAT) | IN_SET(DELETE)
                                   | IN_SET(TOUCH) | IN_SET(CAS) | IN_SET(INCR) | IN_SET(DECR);
  t->attempts++;
  if (is_timed(verdict.ending))
    histogram_record(&t->service, service_ns);
  if (verdict.ending >= WRONG) {
    t->endings[verdict.ending]++;
    return;
  }
  t->ok++;
  t->busy_ns += service_ns;
  t->keys += op->run;
  t->key_bytes += op->key_bytes;
  t->value_bytes += verdict.value_bytes;
  t->not_stored += verdict.ending == NOT_STORED;
  if (looks_up >> op->kind & 1) {
    t->hits += verdict.found;
    t->misses += op->run - verdict.found;
  }
}

void tally_add(struct tally *to, const struct tally *from)
{
  uint64_t *sum = (uint64_t *)to;
  const uint64_t *more = (const uint64_t *)from;
  for (size_t i = 0; i < sizeof *to / sizeof *sum; i++)
    sum[i] += more[i];
}
