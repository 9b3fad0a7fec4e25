/* null: no library at all. What is measured with it is the loop's own cost. */
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

static void begin(void *session, bool prefill)
{
  (void)session, (void)prefill;
}

static void call(void *session, const struct operation *op, struct answer *answer)
{
  struct session *s = session;
  answer->ending = DONE;
  if (op->verb > MGET && op->verb != GAT)
    return;
  answer->ending = READ;
  answer->items = s->items;
  answer->count = op->run;
  if (op->verb != MGET) {
    s->items[0] = (struct item){NULL, 0, op->value, op->length};
    return;
  }
  for (uint32_t i = 0; i < op->run; i++) {
    uint32_t length = s->tape->lengths[op->indexes[i]];
    s->items[i] = (struct item){op->keys[i], op->key_lengths[i],
                                tape_value(s->tape, op->indexes[i], length), length};
  }
}

static void settle(void *session, const struct answer *answer)
{
  (void)session, (void)answer;
}

static int barrier(void *session)
{
  (void)session;
  return 0;
}

static uint64_t reconnects(void *session)
{
  (void)session;
  return 0;
}

const struct client client_null = {
    .name = "null", .library = "none", .version = version,
    .capabilities = "none threads open_loop",
    .kinds = ~(kind_set)0, .in_process = true, .options = "",
    .open = open_session, .close = close_session, .begin = begin, .call = call,
    .settle = settle, .barrier = barrier, .reconnects = reconnects,
};
