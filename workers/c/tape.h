/* The tape: mapped, checked before it is trusted (docs/tape.md), and its records as operations. */
#ifndef TAPE_H
#define TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum verb { GET = 1, GETS, MGET, SET, ADD, REPLACE, DELETE, TOUCH, GAT, VERSION, MSET, CAS = 14, INCR, DECR, VERBS };

/* A kind is a verb, with or without a reply. */
enum { KINDS = 2 * VERBS };
typedef uint64_t kind_set;
#define KIND(verb, noreply) (2 * (verb) + (noreply))
#define IN_SET(verb) ((kind_set)1 << KIND(verb, 0))
#define QUIET(verb) ((kind_set)1 << KIND(verb, 1))

/* One record of the tape, with all arguments of its call. */
struct operation {
  const char *key;         /* the only key, or the first of a run */
  const char *value;       /* the value to write, or the value that a read must bring */
  const char *const *keys; /* the keys of a run */
  const size_t *key_lengths;
  const uint32_t *indexes; /* the indexes of the keys */
  uint32_t key_length, length, run, exptime_s, key_bytes;
  uint32_t number;      /* the number of the record */
  uint64_t value_bytes; /* bytes of a write's value, or of all values of a run */
  uint8_t verb, kind;
  uint8_t generation; /* of this write, or of the lane's last write before this read */
  bool noreply;
};

struct tape {
  uint8_t *data;
  uint64_t bytes, key_count, prefill_count, op_count, run_count, pool_bytes, period_ns;
  uint64_t key_bytes, group, counter_count;
  uint32_t exptime_s, longest_run;
  bool verified;
  uint64_t lanes;              /* number of lanes that the generations are for; 0: there are none */
  _Atomic bool any_generation; /* a read may bring any generation: a failed write may still arrive */
  bool thinks;                 /* callers think between operations */
  const uint32_t *offsets, *lengths, *runs;
  const char *text, *pool;
  const uint8_t *records;
  const uint64_t *times; /* null in a closed loop */
  uint32_t *indexes;     /* 0, 1, 2 …: a key's own index, for operations of one key */
  const char **run_keys; /* the keys of the run table */
  size_t *run_lengths;
  kind_set kinds;
};

/* Null if the file is no tape; `error` then names the failed check and its place. */
struct tape *tape_open(const char *path, char *error, size_t size);
void tape_close(struct tape *tape);

const char *kind_name(int kind);

/* The value of a key at a length, in a generation; null if no write has that length. */
const char *tape_value(const struct tape *tape, uint32_t key, uint64_t length, unsigned generation);

/* Whether a read may bring a value; `told` is the generation in its record. */
bool tape_right(const struct tape *tape, uint32_t key, const char *value, uint64_t length, unsigned told);

/* The operations of a lane, in order; the caller frees them. */
struct operation *tape_lane(const struct tape *tape, uint64_t lane, uint64_t lanes, uint64_t *count);

/* The write that stores a key in the prefill. */
struct operation tape_prefill(const struct tape *tape, uint32_t key);

#endif
