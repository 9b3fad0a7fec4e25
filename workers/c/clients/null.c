/* null: no library. It measures the loop's own cost. It stores nothing: the keys of the prefill are always
 * there, and no others. */
#include "../client.h"

#include <stdlib.h>

struct session {
  const struct tape *tape;
  struct item *items;
};

static const char *version(void)
{
  return "0";
}

static void *open_session(const struct setup *setup, const struct tape *tape, char *reason)
{
  (void)setup, (void)reason;
  struct session *s = malloc(sizeof *s);
  s->tape = tape;
  s->items = calloc(tape->longest_run + 1, sizeof *s->items);
  return s;
}

static void close_session(void *session)
{
  struct session *s = session;
  free(s->items), free(s);
}

static bool is_there(const struct session *s, uint32_t key)
{
  return key < s->tape->prefill_count;
}

static void read_run(struct session *s, const struct operation *op, struct answer *answer)
{
  answer->status = READ;
  answer->count = 0;
  for (uint32_t i = 0; i < op->run; i++) {
    if (!is_there(s, op->indexes[i]))
      continue;
    uint32_t length = s->tape->lengths[op->indexes[i]];
    const char *value = tape_value(s->tape, op->indexes[i], length, 0);
    s->items[answer->count++] = (struct item){op->keys[i], op->key_lengths[i], value, length};
  }
}

static void call(void *session, const struct operation *op, struct answer *answer)
{
  struct session *s = session;
  answer->items = s->items;
  answer->count = 0;
  if (op->verb == MGET) {
    read_run(s, op, answer);
    return;
  }
  bool there = op->run && is_there(s, op->indexes[0]);
  switch (op->noreply ? SET : op->verb) {
  case GET:
  case GETS:
  case GAT:
  case CAS:
    answer->status = op->verb != CAS ? READ : there ? DONE : MISSED;
    answer->count = there;
    s->items[0] = (struct item){NULL, 0, op->value, op->length};
    break;
  case ADD:     answer->status = there ? NOT_STORED : DONE; break;
  case REPLACE: answer->status = there ? DONE : NOT_STORED; break;
  case DELETE:
  case TOUCH:
  case INCR:
  case DECR:    answer->status = there ? DONE : MISSED; break;
  default:      answer->status = DONE;
  }
}

static const struct client null = {
    .name = "null",
    .library = "none",
    .version = version,
    .capabilities = "none threads open_loop",
    .kinds = ~(kind_set)0,
    .options = "",
    .open = open_session,
    .close = close_session,
    .call = call,
};
REGISTER_CLIENT(null)
