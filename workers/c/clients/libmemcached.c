/* libmemcached: one handle for each thread, as a handle must not be shared.
 *
 * The library returns MEMCACHED_NOTFOUND for a failed get as for a miss, unless its result has a count: so this file
 * sets the count of each result, and a failure keeps its own code. The library has no multi-key set, and its `touch`
 * always waits for the reply. `version` is no kind here: the library asks each connection once, and answers from
 * memory from then on. So the barrier after operations without a reply is `stats`. On the binary wire the server
 * answers a quiet delete, incr or decr of a missing key, and the library takes this for the answer to the next
 * operation: these kinds are refused. With buffer_requests a set or delete stays in the handle until the next read or
 * until 8 KiB are full, and the library never reports its result: so only writes without a reply are allowed.
 * Reconnects can be counted on TCP only. */
// pkg-config: libmemcached
#include "../client.h"
#include "libmemcached_behaviors.h"

#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct session {
  memcached_st *handle;
  memcached_result_st *results; /* one for each key of the longest run, and one more */
  struct item *items;
  uint32_t room;
  bool proxied;            /* a proxy takes no `stats` */
  bool noreply, with_cas;  /* the handle's settings now */
  bool buffers, buffering; /* buffer_requests: the option, and the setting now */
  char *value;             /* the value of a single get, to free */
  uint32_t closed;         /* lost connections that are not open again yet */
  uint64_t reconnects;
};

static bool add_server(memcached_st *handle, const char *server)
{
  if (!strncmp(server, "unix:", 5))
    return memcached_server_add_unix_socket(handle, server + 5) == MEMCACHED_SUCCESS;
  const char *colon = strrchr(server, ':');
  char host[256];
  if (!colon || (size_t)(colon - server) >= sizeof host)
    return false;
  bool brackets = *server == '[';
  snprintf(host, sizeof host, "%.*s", (int)(colon - server) - 2 * brackets, server + brackets);
  return memcached_server_add(handle, host, (in_port_t)atoi(colon + 1)) == MEMCACHED_SUCCESS;
}

/* Some behaviours exclude others: this tries them on a handle that never connects. */
static void try_behaviors(const struct setup *setup, char *reason)
{
  memcached_st *handle = memcached_create(NULL);
  configure(handle, setup);
  behave(handle, setup, reason);
  memcached_free(handle);
}

static void refuse(const struct setup *setup, const struct tape *tape, char *reason)
{
  kind_set unseen = IN_SET(SET) | IN_SET(DELETE);
  kind_set unmatched = QUIET(DELETE) | QUIET(INCR) | QUIET(DECR);
  if (is_on(setup, "buffer_requests", "off") && (tape->kinds & unseen))
    snprintf(reason, REASON_SIZE, "buffer_requests: it never reports the result of a buffered set or delete");
  else if (!strcmp(setup->wire, "binary") && (tape->kinds & unmatched))
    snprintf(reason, REASON_SIZE, "binary: it takes the answer of a quiet delete, incr or decr for the next one's");
  else if (!strcmp(option_value(setup, "hashing", "default"), "ketama") && option_value(setup, "distribution", NULL))
    snprintf(reason, REASON_SIZE, "hashing=ketama is a distribution already");
  else
    try_behaviors(setup, reason);
}

/* A command that every server answers. (The library rejects versions with letters, and asks for them once.) */
static memcached_return_t ask_each(const struct session *s)
{
  memcached_return_t code;
  if (s->proxied) {
    code = memcached_touch(s->handle, "cachemark", strlen("cachemark"), 0);
    return code == MEMCACHED_NOTFOUND ? MEMCACHED_SUCCESS : code;
  }
  memcached_stat_st *stats = memcached_stat(s->handle, NULL, &code);
  if (stats)
    memcached_stat_free(s->handle, stats);
  return code;
}

static void close_session(void *session)
{
  struct session *s = session;
  for (uint32_t i = 0; i < s->room; i++)
    memcached_result_free(&s->results[i]);
  memcached_free(s->handle), free(s->results), free(s->items), free(s);
}

static void *open_as(const struct setup *setup, const struct tape *tape, char *reason, bool proxied)
{
  struct session *s = calloc(1, sizeof *s);
  s->proxied = proxied;
  s->handle = memcached_create(NULL);
  s->room = tape->longest_run + 1;
  s->results = calloc(s->room, sizeof *s->results);
  s->items = calloc(s->room, sizeof *s->items);
  s->buffers = is_on(setup, "buffer_requests", "off");
  for (uint32_t i = 0; i < s->room; i++)
    memcached_result_create(s->handle, &s->results[i]);
  for (unsigned i = 0; i < setup->server_count && !*reason; i++)
    if (!add_server(s->handle, setup->servers[i]))
      snprintf(reason, REASON_SIZE, "%s: no host:port or unix:/path", setup->servers[i]);
  configure(s->handle, setup);
  behave(s->handle, setup, reason);
  struct login who;
  if (read_login(setup, &who, reason) && memcached_set_sasl_auth_data(s->handle, who.user, who.password))
    snprintf(reason, REASON_SIZE, "auth: this library was built without SASL");
  /* The first command connects. */
  if (!*reason && ask_each(s) != MEMCACHED_SUCCESS)
    snprintf(reason, REASON_SIZE, "%s: %s", setup->servers[0], memcached_last_error_message(s->handle));
  if (!*reason)
    return s;
  close_session(s);
  return NULL;
}

/* twemproxy closes a connection that asks for `stats`; the library would then wait before it reconnects. */
static void *open_session(const struct setup *setup, const struct tape *tape, char *reason)
{
  char without_stats[REASON_SIZE] = "";
  void *session = open_as(setup, tape, reason, false);
  if (session || setup->server_count > 1)
    return session;
  if ((session = open_as(setup, tape, without_stats, true)))
    *reason = 0;
  return session;
}

static enum status status_of(memcached_return_t code)
{
  switch (code) {
    /* clang-format off */
  case MEMCACHED_SUCCESS: case MEMCACHED_STORED: case MEMCACHED_DELETED: case MEMCACHED_BUFFERED: case MEMCACHED_END:
    return DONE;
  case MEMCACHED_NOTFOUND: return MISSED;
  case MEMCACHED_NOTSTORED: case MEMCACHED_DATA_EXISTS: return NOT_STORED;
  case MEMCACHED_TIMEOUT: return FAULT_TIMEOUT;
  case MEMCACHED_HOST_LOOKUP_FAILURE: case MEMCACHED_CONNECTION_FAILURE: case MEMCACHED_WRITE_FAILURE:
  case MEMCACHED_READ_FAILURE: case MEMCACHED_ERRNO: case MEMCACHED_SERVER_MARKED_DEAD: case MEMCACHED_NO_SERVERS:
  case MEMCACHED_SERVER_TEMPORARILY_DISABLED: case MEMCACHED_SOME_ERRORS: case MEMCACHED_FAILURE:
    return FAULT_CONNECTION;
  case MEMCACHED_SERVER_ERROR: case MEMCACHED_SERVER_MEMORY_ALLOCATION_FAILURE: case MEMCACHED_E2BIG:
  case MEMCACHED_MEMORY_ALLOCATION_FAILURE: /* on the binary wire, an error of the server */
    return FAULT_SERVER;
  case MEMCACHED_CLIENT_ERROR: case MEMCACHED_ERROR: case MEMCACHED_BAD_KEY_PROVIDED: case MEMCACHED_KEY_TOO_BIG:
  case MEMCACHED_INVALID_ARGUMENTS: case MEMCACHED_NOT_SUPPORTED:
    return FAULT_CLIENT;
  /* clang-format on */
  default: return FAULT_PROTOCOL;
  }
}

/* The status of a call's code, or of the more exact code in the handle. */
static enum status exact_status(const struct session *s, memcached_return_t code)
{
  enum status status = status_of(code);
  if (status == DONE || status == NOT_STORED)
    return status;
  memcached_return_t left = memcached_last_error(s->handle);
  return left == MEMCACHED_SUCCESS ? status : status_of(left);
}

/* The prefill needs the outcome of its writes. */
static void begin(void *session, bool prefill)
{
  struct session *s = session;
  bool buffering = s->buffers && !prefill;
  if (buffering != s->buffering) {
    memcached_behavior_set(s->handle, MEMCACHED_BEHAVIOR_BUFFER_REQUESTS, buffering);
    ask_each(s); /* the setting closes the connections; this opens them again */
    s->buffering = buffering;
  }
}

static void set_up(struct session *s, const struct operation *op)
{
  if (op->noreply != s->noreply) {
    s->noreply = op->noreply;
    memcached_behavior_set(s->handle, MEMCACHED_BEHAVIOR_NOREPLY, s->noreply);
  }
  bool with_cas = op->verb == GETS || op->verb == CAS;
  if (with_cas != s->with_cas) {
    s->with_cas = with_cas;
    memcached_behavior_set(s->handle, MEMCACHED_BEHAVIOR_SUPPORT_CAS, with_cas);
  }
}

static void get(struct session *s, const struct operation *op, struct answer *answer)
{
  memcached_return_t code;
  uint32_t flags = 0;
  s->handle->result.count = 1; /* see above */
  s->value = memcached_get(s->handle, op->key, op->key_length, &s->items[0].length, &flags, &code);
  s->items[0].value = s->value, s->items[0].key = NULL;
  answer->status = exact_status(s, code);
  answer->status = answer->status == DONE && flags ? WRONG_VALUE : answer->status;
  answer->count = answer->status == DONE;
}

/* Whether a multi-key get left out a server: it does so silently for a while after a server has failed. */
static bool lacks_a_server(const struct session *s)
{
  uint32_t servers = memcached_server_count(s->handle);
  for (uint32_t i = 0; servers > 1 && i < servers; i++)
    if (memcached_failed(memcached_server_error_return(memcached_server_instance_by_position(s->handle, i))))
      return true;
  return false;
}

/* A multi-key get: the results stay in the session until the worker has verified them. */
static void fetch(
    struct session *s, const char *const *keys, const size_t *lengths, uint32_t count, struct answer *answer)
{
  memcached_return_t sent = memcached_mget(s->handle, keys, lengths, count), code = sent;
  uint32_t found = 0, flags = 0;
  for (;;) {
    uint32_t place = found < s->room ? found : s->room - 1;
    s->results[place].count = 1;
    memcached_result_st *result = memcached_fetch_result(s->handle, &s->results[place], &code);
    if (!result)
      break;
    s->items[place] = (struct item){memcached_result_key_value(result), memcached_result_key_length(result),
        memcached_result_value(result), memcached_result_length(result)};
    flags |= memcached_result_flags(result), found++;
  }
  answer->status = memcached_failed(sent) ? exact_status(s, sent) : exact_status(s, code);
  if (answer->status == MISSED)
    answer->status = DONE; /* the library says so at the end of the results */
  if (answer->status == DONE && found < count && lacks_a_server(s))
    answer->status = FAULT_CONNECTION;
  if (found > count || (answer->status == DONE && flags != 0))
    answer->status = WRONG_VALUE;
  answer->count = found;
}

static void store_if_same(struct session *s, const struct operation *op, struct answer *answer)
{
  const size_t length = op->key_length;
  fetch(s, &op->key, &length, 1, answer);
  if (answer->status == DONE && answer->count == 0)
    answer->status = MISSED;
  if (answer->status != DONE)
    return;
  uint64_t token = memcached_result_cas(&s->results[0]);
  answer->status = exact_status(
      s, memcached_cas(s->handle, op->key, op->key_length, op->value, op->length, op->exptime_s, 0, token));
  if (answer->status == MISSED) /* deleted since it was read */
    answer->status = NOT_STORED;
}

static memcached_return_t change(memcached_st *handle, const struct operation *op)
{
  const char *key = op->key;
  size_t size = op->key_length;
  uint64_t number;
  switch (op->verb) {
  case SET:     return memcached_set(handle, key, size, op->value, op->length, op->exptime_s, 0);
  case ADD:     return memcached_add(handle, key, size, op->value, op->length, op->exptime_s, 0);
  case REPLACE: return memcached_replace(handle, key, size, op->value, op->length, op->exptime_s, 0);
  case DELETE:  return memcached_delete(handle, key, size, 0);
  case TOUCH:   return memcached_touch(handle, key, size, op->exptime_s);
  case INCR:    return memcached_increment(handle, key, size, op->length, &number);
  default:      return memcached_decrement(handle, key, size, op->length, &number);
  }
}

static void call(void *session, const struct operation *op, struct answer *answer)
{
  struct session *s = session;
  set_up(s, op);
  answer->items = s->items;
  answer->count = 0;
  if (op->verb == GET) {
    get(s, op, answer);
  } else if (op->verb == GETS) {
    const size_t length = op->key_length;
    fetch(s, &op->key, &length, 1, answer);
  } else if (op->verb == MGET) {
    fetch(s, op->keys, op->key_lengths, op->run, answer);
  } else if (op->verb == CAS) {
    store_if_same(s, op, answer);
    return;
  } else {
    answer->status = exact_status(s, change(s->handle, op));
    return;
  }
  if (answer->status == DONE || answer->status == MISSED)
    answer->status = READ;
}

static uint32_t closed(const struct session *s)
{
  uint32_t count = 0;
  for (uint32_t i = 0; i < memcached_server_count(s->handle); i++)
    count += memcached_server_srcport(memcached_server_instance_by_position(s->handle, i)) == 0;
  return count;
}

static void release(void *session, const struct answer *answer)
{
  struct session *s = session;
  free(s->value), s->value = NULL;
  if (answer->status < WRONG_VALUE && !s->closed)
    return;
  const uint32_t now = closed(s), before = s->closed;
  s->reconnects += now < before ? before - now : 0;
  s->closed = now;
}

static int barrier(void *session)
{
  struct session *s = session;
  memcached_behavior_set(s->handle, MEMCACHED_BEHAVIOR_NOREPLY, s->noreply = false);
  return ask_each(s) == MEMCACHED_SUCCESS ? (int)memcached_server_count(s->handle) : -1;
}

static unsigned renew(void *session)
{
  struct session *s = session;
  memcached_quit(s->handle);
  ask_each(s); /* this opens them again */
  s->closed = closed(s);
  return memcached_server_count(s->handle) - s->closed;
}

static uint64_t reconnects(void *session)
{
  return ((struct session *)session)->reconnects;
}

/* clang-format off */
static const struct client libmemcached = {
    .name = "libmemcached", .library = "libmemcached", .version = memcached_lib_version,
    .capabilities = "text binary threads in_order open_loop unix cluster login_sasl",
    .kinds = IN_SET(GET) | IN_SET(GETS) | IN_SET(MGET) | IN_SET(SET) | IN_SET(ADD) | IN_SET(REPLACE)
             | IN_SET(DELETE) | IN_SET(TOUCH) | IN_SET(CAS) | IN_SET(INCR) | IN_SET(DECR) | QUIET(SET)
             | QUIET(ADD) | QUIET(REPLACE) | QUIET(DELETE) | QUIET(INCR) | QUIET(DECR),
    .options = "profile=common|defaults nodelay=on|off buffer_requests=on|off hashing=default|ketama "
               "distribution=modula|consistent no_block=on|off keepalive=on|off verify_key=on|off sort_hosts=on|off "
               "hash=default|md5|crc|fnv1_64|fnv1a_64|fnv1_32|fnv1a_32|jenkins|murmur "
               "socket_send_size=N socket_recv_size=N io_msg_watermark=N io_bytes_watermark=N auth=USER:FILE",
    .refuse = refuse, .open = open_session, .close = close_session, .begin = begin, .call = call,
    .release = release, .barrier = barrier, .reconnects = reconnects, .renew = renew,
};
/* clang-format on */
REGISTER_CLIENT(libmemcached)
