/* The interface of a client file; README.md says what each part must do. */
#ifndef CLIENT_H
#define CLIENT_H

#include "tape.h"

enum { TEXT_SIZE = 512, REASON_SIZE = TEXT_SIZE - 2, MOST_SERVERS = 64 };

struct setup {
  const char *servers[MOST_SERVERS]; /* as in the request: host:port or unix:/path */
  unsigned server_count;
  const char *wire;
  uint64_t threads, connections, depth, share, shares, timeout_ms;
  struct option {
    const char *name, *value;
  } options[16];
  unsigned option_count;
};

/* The value of an option, or the default. */
const char *option_value(const struct setup *setup, const char *name, const char *otherwise);
/* Whether it is `on`. */
bool is_on(const struct setup *setup, const char *name, const char *otherwise);
/* Whether to use the settings that all clients share, and not the library's own. */
bool is_common(const struct setup *setup);
/* The login in the option `auth`: `USER:FILE`; the first line of the file is the password. */
struct login {
  char user[256], password[1024];
};
/* Whether the option asks for a login; writes the `reason` if the file cannot be read. */
bool read_login(const struct setup *setup, struct login *login, char *reason);
/* Whether `word` is one of `words`, which have spaces between them. */
bool has_word(const char *words, const char *word);

/* The result of a call. From WRONG_VALUE on it failed. */
enum status {
  /* clang-format off */
  READ,        /* the answer has the values of the keys that were found */
  DONE,        /* the key was there, or the operation needs none */
  MISSED,      /* the key was not there */
  NOT_STORED,
  WRONG_VALUE, FAULT_TIMEOUT, FAULT_CONNECTION, FAULT_SERVER, FAULT_CLIENT, FAULT_PROTOCOL, STATUSES
  /* clang-format on */
};

struct item {
  const char *key; /* null: the operation's only key */
  size_t key_length;
  const char *value;
  size_t length;
};

struct answer {
  enum status status;
  uint32_t count;
  const struct item *items;
};

/* These may be null: refuse, begin, release, barrier, reconnects, renew. */
struct client {
  const char *name, *library;
  const char *(*version)(void);
  const char *capabilities; /* wires and features; `none` is a cache in the process. The kinds follow */
  kind_set kinds;
  /* Names with their possible values, N for a number: "nodelay=on|off retries=N …". */
  const char *options;
  /* Writes into `reason` why the client cannot play the trial; nothing if it can. */
  void (*refuse)(const struct setup *setup, const struct tape *tape, char *reason);
  /* A connected session, or null with the `reason`. */
  void *(*open)(const struct setup *setup, const struct tape *tape, char *reason);
  void (*close)(void *session);
  /* Before a phase; not timed. */
  void (*begin)(void *session, bool prefill);
  /* The operation alone: the worker times this call. */
  void (*call)(void *session, const struct operation *op, struct answer *answer);
  /* After it, not timed: free the answer, and repair connections that failed. */
  void (*release)(void *session, const struct answer *answer);
  /* Sends a command with a reply on each connection, after operations without one: their number, or -1. */
  int (*barrier)(void *session);
  /* Connections that were opened again since the session began. */
  uint64_t (*reconnects)(void *session);
  /* Closes and reopens the connections: their number. If one fails, the next call opens it. */
  unsigned (*renew)(void *session);
};

/* Finds a client by name: each client file registers its own. */
const struct client *find_client(const char *name);
void register_client(const struct client *client);

/* Write this once in each client file, after its `static const struct client`. */
/* clang-format off */
#define REGISTER_CLIENT(client) \
  __attribute__((constructor)) static void register_this_client(void) { register_client(&(client)); }
/* clang-format on */

/* The names of all clients, in one line. */
const char *client_names(void);

#endif
