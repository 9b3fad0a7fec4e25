/* The tape: mapped, checked before it is trusted (docs/tape.md), and its records as operations. */
#include "tape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_BYTES = 184, FORMAT = 2, RECORD_BYTES = 16, GENERATIONS = 4 };
/* The generations that a read may bring, as bits, by the generation in its record. */
static const uint8_t RIGHT[GENERATIONS] = {0xf, 0xe, 0x6, 0xa};
static const char COUNTER[] = "1000000000";

static const char *const NAMES[VERBS] = {[GET] = "get",
    [GETS] = "gets",
    [MGET] = "mget",
    [SET] = "set",
    [ADD] = "add",
    [REPLACE] = "replace",
    [DELETE] = "delete",
    [TOUCH] = "touch",
    [GAT] = "gat",
    [VERSION] = "version",
    [MSET] = "mset",
    [CAS] = "cas",
    [INCR] = "incr",
    [DECR] = "decr"};
static const kind_set MAY_BE_QUIET = IN_SET(SET) | IN_SET(ADD) | IN_SET(REPLACE) | IN_SET(DELETE) | IN_SET(TOUCH)
    | IN_SET(MSET) | IN_SET(INCR) | IN_SET(DECR);
static const kind_set ON_COUNTERS = IN_SET(DELETE) | IN_SET(INCR) | IN_SET(DECR) | IN_SET(VERSION);
static const kind_set BATCHES = IN_SET(MGET) | IN_SET(MSET);
static const kind_set WITH_GENERATIONS = IN_SET(SET) | IN_SET(GET) | IN_SET(GETS) | IN_SET(GAT) | IN_SET(MGET);
static const kind_set STEPS = IN_SET(INCR) | IN_SET(DECR);

struct record {
  uint8_t verb, flags;
  uint16_t run;
  uint32_t key, length, exptime_s;
};

/* The buffer for the text of a failed check. */
struct error_text {
  char *text;
  size_t size;
};

const char *kind_name(int kind)
{
  static char names[KINDS][24];
  snprintf(names[kind], sizeof names[kind], "%s%s", NAMES[kind / 2], kind % 2 ? "_noreply" : "");
  return names[kind];
}

static bool check(struct error_text to, bool holds, const char *what, uint64_t at)
{
  if (!holds)
    snprintf(to.text, to.size, "the tape has %s (at byte %llu)", what, (unsigned long long)at);
  return holds;
}

static uint64_t field(const struct tape *t, unsigned at)
{
  uint64_t value;
  memcpy(&value, t->data + at, sizeof value);
  return value;
}

static struct record record_at(const struct tape *t, uint64_t number)
{
  struct record r;
  memcpy(&r, t->records + RECORD_BYTES * number, sizeof r);
  return r;
}

/* A section of the file, or null. */
static const void *section(
    struct error_text to, const struct tape *t, unsigned field_at, uint64_t count, uint64_t width)
{
  uint64_t at = field(t, field_at);
  bool inside = at >= HEADER_BYTES && at % 8 == 0 && at <= t->bytes && count <= (t->bytes - at) / width;
  return check(to, inside, "a section outside the file", field_at) ? t->data + at : NULL;
}

static bool check_header(struct error_text to, struct tape *t)
{
  if (!check(to, t->bytes >= HEADER_BYTES, "no header of 184 bytes", 0)
      || !check(to, !memcmp(t->data, "CMTAPE\0", 8), "no magic", 0)
      || !check(to, (uint32_t)field(t, 8) == FORMAT, "another version than 2", 8)
      || !check(to, field(t, 8) >> 32 == HEADER_BYTES, "a header of another length", 12))
    return false;
  t->key_count = field(t, 32), t->prefill_count = field(t, 40), t->op_count = field(t, 48);
  t->run_count = field(t, 56), t->pool_bytes = field(t, 64), t->period_ns = field(t, 72);
  t->key_bytes = field(t, 96), t->group = field(t, 160), t->counter_count = field(t, 168);
  t->exptime_s = (uint32_t)field(t, 144), t->verified = !(field(t, 152) & 1);
  t->lanes = field(t, 152) >> 32;
  t->thinks = field(t, 176) != 0;
  return check(to, field(t, 16) == t->bytes, "another length than it says", 16)
      && check(to, t->key_count && t->key_count < UINT32_MAX + 1ULL, "no possible number of keys", 32)
      && check(to, t->prefill_count <= t->key_count, "more keys to store than it has", 40)
      && check(to, t->op_count && t->op_count < UINT32_MAX, "no possible number of operations", 48)
      && check(to, field(t, 144) <= UINT32_MAX, "no possible expiry time", 144)
      && check(to, !(field(t, 152) & 0xfffffffe), "unknown flags", 152)
      && check(to, t->group && t->op_count % t->group == 0, "no whole number of groups", 160)
      && check(to, t->counter_count <= t->key_count, "more counters than keys", 168)
      && check(to, !field(t, 136) == !t->period_ns, "times without a period, or a period without times", 72)
      && check(to, !field(t, 136) || !field(t, 176), "both times and think times", 176);
}

static bool map_sections(struct error_text to, struct tape *t)
{
  return (t->offsets = section(to, t, 80, t->key_count + 1, 4)) && (t->text = section(to, t, 88, t->key_bytes, 1))
      && (t->lengths = section(to, t, 104, t->key_count, 4)) && (t->pool = section(to, t, 112, t->pool_bytes, 1))
      && (t->records = section(to, t, 120, t->op_count, RECORD_BYTES))
      && (t->runs = section(to, t, 128, t->run_count, 4))
      && (!field(t, 136) || (t->times = section(to, t, 136, t->op_count, 8)))
      && (!t->thinks || section(to, t, 176, t->op_count, 8));
}

static bool check_keys(struct error_text to, const struct tape *t)
{
  uint64_t at = field(t, 80), first_counter = t->key_count - t->counter_count;
  for (uint64_t k = 0; k < t->key_count; k++) {
    uint32_t from = t->offsets[k], until = t->offsets[k + 1];
    if (!check(to, until > from && until - from <= 250, "a key of a wrong length", at + 4 * k)
        || !check(to, until <= t->key_bytes, "a key outside its table", at + 4 * k))
      return false;
    for (uint32_t i = from; i < until; i++) {
      uint8_t byte = (uint8_t)t->text[i];
      if (!check(to, byte > 32 && byte != 127, "a key with white space or a control character", field(t, 88) + i))
        return false;
    }
    uint64_t place = field(t, 104) + 4 * k;
    if (!check(to, t->lengths[k] <= t->pool_bytes, "a length beyond the pool", place)
        || !check(to, k < first_counter || t->lengths[k] == strlen(COUNTER), "a counter of another length", place))
      return false;
  }
  return true;
}

static bool check_record(struct error_text to, struct tape *t, struct record r, uint64_t at)
{
  bool known = r.verb < VERBS && NAMES[r.verb];
  if (!check(to, known, "an unknown verb", at))
    return false;
  kind_set verb = IN_SET(r.verb);
  uint64_t first_counter = t->key_count - t->counter_count;
  bool batch = verb & BATCHES, step = verb & STEPS, keyless = r.verb == VERSION;
  bool run = batch ? r.run >= 1 : r.run == !keyless;
  uint64_t limit = batch ? t->run_count : t->key_count;
  bool quiet = r.flags & 1, generation = r.flags >> 1;
  bool may_have = t->lanes && r.flags >> 1 < GENERATIONS && (verb & WITH_GENERATIONS);
  if (!check(to, (!quiet || (verb & MAY_BE_QUIET)) && (!generation || may_have), "bad flags", at)
      || !check(to, run, "a wrong run", at)
      || !check(to, keyless || (uint64_t)r.key + r.run <= limit, "an unknown key", at)
      || !check(to, !step || r.key >= first_counter, "a counter's verb on another key", at)
      || !check(to, step || r.length <= t->pool_bytes, "a length beyond the pool", at))
    return false;
  for (uint32_t i = 0; t->counter_count && !(verb & ON_COUNTERS) && i < r.run; i++) {
    uint32_t key = batch ? t->runs[r.key + i] : r.key;
    if (!check(to, key < first_counter, "a verb on a counter that is not for it", at))
      return false;
  }
  t->kinds |= (kind_set)1 << KIND(r.verb, quiet);
  if (batch && r.run > t->longest_run)
    t->longest_run = r.run;
  return true;
}

static bool check_records(struct error_text to, struct tape *t)
{
  for (uint64_t i = 0; i < t->run_count; i++)
    if (!check(to, t->runs[i] < t->key_count, "a run of unknown keys", field(t, 128) + 4 * i))
      return false;
  for (uint64_t j = 0; j < t->op_count; j++) {
    if (!check_record(to, t, record_at(t, j), field(t, 120) + RECORD_BYTES * j))
      return false;
    bool later = !t->times || ((j == 0 || t->times[j - 1] <= t->times[j]) && t->times[j] < t->period_ns);
    if (!check(to, later, "times out of order", field(t, 136) + 8 * j))
      return false;
  }
  return true;
}

static void make_tables(struct tape *t)
{
  t->indexes = calloc(t->key_count, sizeof *t->indexes);
  t->run_keys = calloc(t->run_count + 1, sizeof *t->run_keys);
  t->run_lengths = calloc(t->run_count + 1, sizeof *t->run_lengths);
  for (uint64_t k = 0; k < t->key_count; k++)
    t->indexes[k] = (uint32_t)k;
  for (uint64_t i = 0; i < t->run_count; i++) {
    uint32_t from = t->offsets[t->runs[i]];
    t->run_keys[i] = t->text + from;
    t->run_lengths[i] = t->offsets[t->runs[i] + 1] - from;
  }
}

struct tape *tape_open(const char *path, char *error, size_t size)
{
  struct tape *t = calloc(1, sizeof *t);
  struct stat status;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || fstat(file, &status) || !S_ISREG(status.st_mode) || status.st_size == 0) {
    snprintf(error, size, "%s: %s", path, file < 0 ? strerror(errno) : "no file with anything in it");
  } else {
    t->bytes = (uint64_t)status.st_size;
    /* Populated, so that no page fault is timed. */
    t->data = mmap(NULL, t->bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (t->data == MAP_FAILED) {
      snprintf(error, size, "%s: %s", path, strerror(errno));
      t->data = NULL;
    }
  }
  if (file >= 0)
    close(file);
  struct error_text to = {error, size};
  if (t->data && check_header(to, t) && map_sections(to, t) && check_keys(to, t) && check_records(to, t)) {
    make_tables(t);
    return t;
  }
  tape_close(t);
  return NULL;
}

void tape_close(struct tape *t)
{
  if (!t)
    return;
  if (t->data)
    munmap(t->data, t->bytes);
  free(t->indexes), free(t->run_keys), free(t->run_lengths), free(t);
}

const char *tape_value(const struct tape *t, uint32_t key, uint64_t length, unsigned generation)
{
  if (length > t->pool_bytes)
    return NULL;
  uint64_t place = key * 786433ULL + length * 97 + generation * 262147ULL;
  return t->pool + place % (t->pool_bytes - length + 1);
}

bool tape_right(const struct tape *t, uint32_t key, const char *value, uint64_t length, unsigned told)
{
  uint8_t right = !t->lanes ? 1 : RIGHT[t->any_generation ? 0 : told];
  for (unsigned generation = 0; generation < GENERATIONS; generation++) {
    const char *expected = right >> generation & 1 ? tape_value(t, key, length, generation) : NULL;
    if (expected && memcmp(expected, value, length) == 0)
      return true;
  }
  return false;
}

static uint32_t lay_keys(const struct tape *t, struct operation *op, struct record r)
{
  bool batch = IN_SET(r.verb) & BATCHES;
  op->run = r.run;
  if (!r.run)
    return 0;
  op->indexes = batch ? t->runs + r.key : t->indexes + r.key;
  uint32_t first = op->indexes[0];
  op->key = t->text + t->offsets[first];
  op->key_length = t->offsets[first + 1] - t->offsets[first];
  if (batch)
    op->keys = t->run_keys + r.key, op->key_lengths = t->run_lengths + r.key;
  for (uint32_t i = 0; i < r.run; i++)
    op->key_bytes += t->offsets[op->indexes[i] + 1] - t->offsets[op->indexes[i]];
  return first;
}

static struct operation make_operation(const struct tape *t, uint32_t number)
{
  struct record r = record_at(t, number);
  struct operation op = {.number = number,
      .exptime_s = r.exptime_s,
      .verb = r.verb,
      .generation = r.flags >> 1,
      .kind = (uint8_t)KIND(r.verb, r.flags & 1),
      .noreply = r.flags & 1};
  uint32_t key = lay_keys(t, &op, r);
  kind_set reads = IN_SET(GET) | IN_SET(GETS) | IN_SET(MGET) | IN_SET(GAT) | IN_SET(MSET);
  op.length = r.run && (IN_SET(r.verb) & reads) ? t->lengths[key] : r.length;
  if (r.run && !(IN_SET(r.verb) & STEPS))
    op.value = tape_value(t, key, op.length, op.generation);
  op.value_bytes = op.length;
  for (uint32_t i = 1; r.verb == MSET && i < r.run; i++)
    op.value_bytes += t->lengths[op.indexes[i]];
  return op;
}

struct operation *tape_lane(const struct tape *t, uint64_t lane, uint64_t lanes, uint64_t *count)
{
  uint64_t groups = t->op_count / t->group;
  *count = lane < groups ? ((groups - lane - 1) / lanes + 1) * t->group : 0;
  struct operation *all = calloc(*count + 1, sizeof *all), *next = all;
  for (uint64_t g = lane; g < groups; g += lanes)
    for (uint64_t j = g * t->group; j < (g + 1) * t->group; j++)
      *next++ = make_operation(t, (uint32_t)j);
  return all;
}

struct operation tape_prefill(const struct tape *t, uint32_t key)
{
  struct record r = {.verb = SET, .run = 1, .key = key};
  struct operation op = {.exptime_s = t->exptime_s, .verb = SET, .kind = KIND(SET, 0)};
  lay_keys(t, &op, r);
  op.value_bytes = op.length = t->lengths[key];
  op.value = key < t->key_count - t->counter_count ? tape_value(t, key, op.length, 0) : COUNTER;
  return op;
}
