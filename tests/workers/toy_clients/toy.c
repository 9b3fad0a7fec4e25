/* toy: a socket and no library. The text protocol, `get` and `set`. */
#include "../client.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { ROOM = 1 << 21 };

struct session {
  const struct setup *setup;
  int fd;
  FILE *replies;  /* null after a failure: the next call opens another connection */
  struct item item;
  char value[ROOM];
};

static const char *version(void)
{
  return "1";
}

static bool connect_session(struct session *s)
{
  char host[256], *port;
  snprintf(host, sizeof host, "%s", s->setup->servers[0]);
  port = strrchr(host, ':');
  *port++ = 0;
  struct addrinfo wanted = {.ai_socktype = SOCK_STREAM}, *found;
  if (getaddrinfo(host, port, &wanted, &found))
    return false;
  int fd = socket(found->ai_family, SOCK_STREAM, 0), on = 1;
  struct timeval timeout = {(time_t)(s->setup->timeout_ms / 1000), (suseconds_t)(s->setup->timeout_ms % 1000 * 1000)};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  bool connected = connect(fd, found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  if (connected)
    s->replies = fdopen(s->fd = fd, "r");
  else
    close(fd);
  return connected;
}

static void close_session(void *session)
{
  struct session *s = session;
  if (s->replies)
    fclose(s->replies);
  free(s);
}

static void *open_session(const struct setup *setup, const struct tape *tape, char *reason)
{
  (void)tape;
  struct session *s = calloc(1, sizeof *s);
  s->setup = setup;
  if (connect_session(s))
    return s;
  snprintf(reason, REASON_SIZE, "%s: no connection", setup->servers[0]);
  close_session(s);
  return NULL;
}

/* A line of the reply, or how the call failed. */
static enum status read_line(struct session *s, char *line, size_t size)
{
  errno = 0;
  if (fgets(line, (int)size, s->replies))
    return !strncmp(line, "SERVER_ERROR", 12) ? FAULT_SERVER : strstr(line, "ERROR") ? FAULT_CLIENT : DONE;
  bool late = errno == EAGAIN || errno == EWOULDBLOCK;
  fclose(s->replies);
  s->replies = NULL;
  return late ? FAULT_TIMEOUT : FAULT_CONNECTION;
}

static void get(struct session *s, const struct operation *op, struct answer *answer)
{
  char line[512];
  size_t length = 0;
  int size = snprintf(line, sizeof line, "get %.*s\r\n", (int)op->key_length, op->key);
  send(s->fd, line, (size_t)size, MSG_NOSIGNAL); /* a failure shows in the reply */
  answer->status = read_line(s, line, sizeof line);
  if (answer->status != DONE)
    return;
  answer->status = READ;
  if (sscanf(line, "VALUE %*s %*u %zu", &length) != 1)
    return;
  char rest[8];
  bool whole = length < ROOM && fread(s->value, 1, length, s->replies) == length
               && fgets(rest, sizeof rest, s->replies) && fgets(rest, sizeof rest, s->replies);
  answer->count = whole;
  s->item = (struct item){NULL, 0, s->value, length};
  if (!whole)
    answer->status = FAULT_PROTOCOL;
}

static void call(void *session, const struct operation *op, struct answer *answer)
{
  struct session *s = session;
  char line[512];
  answer->items = &s->item;
  answer->count = 0;
  answer->status = FAULT_CONNECTION;
  if (!s->replies && !connect_session(s))
    return;
  if (op->verb == GET) {
    get(s, op, answer);
    return;
  }
  int size = snprintf(line, sizeof line, "set %.*s 0 %u %u\r\n", (int)op->key_length, op->key, op->exptime_s, op->length);
  send(s->fd, line, (size_t)size, MSG_NOSIGNAL | MSG_MORE);
  send(s->fd, op->value, op->length, MSG_NOSIGNAL | MSG_MORE);
  send(s->fd, "\r\n", 2, MSG_NOSIGNAL);
  answer->status = read_line(s, line, sizeof line);
}

static const struct client toy = {
    .name = "toy", .library = "none", .version = version,
    .capabilities = "text threads open_loop", .kinds = IN_SET(GET) | IN_SET(SET), .options = "",
    .open = open_session, .close = close_session, .call = call,
};
REGISTER_CLIENT(toy)
