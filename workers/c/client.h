/* What a client file gives to the worker; README.md says what each part has to do. */
#ifndef CLIENT_H
#define CLIENT_H

#include "tape.h"

enum { TEXT_SIZE = 512, REASON_SIZE = TEXT_SIZE - 2, MOST_SERVERS = 64 };

struct setup {
  const char *servers[MOST_SERVERS]; /* as they came: host:port or unix:/path */
  unsigned server_count;
  const char *wire;
  uint64_t threads, connections, depth, share, shares, timeout_ms;
  struct option {
    const char *name, *value;
  } options[16];
  unsigned option_count;
};

/* The value of an option, or what it is where it was not given. */
const char *option_value(const struct setup *setup, const char *name, const char *otherwise);
/* Whether it is `on`. */
bool is_on(const struct setup *setup, const char *name, const char *otherwise);
/* The ground that all clients share, or the library as it comes. */
bool is_common(const struct setup *setup);
/* Who logs in, as the option `auth` has it: `USER:FILE`, whose first line is the password. */
struct login {
  char user[256], password[1024];
};
/* Whether a login is asked for; with the `reason` where it cannot be read. */
bool read_login(const struct setup *setup, struct login *login, char *reason);
/* Whether one of `words`, with spaces between them, is `word`. */
bool has_word(const char *words, const char *word);

/* How a call ended. From WRONG_VALUE on it failed. */
enum status {
  /* clang-format off */
  READ,        /* with the values in the answer, of the keys that were found */
  DONE,        /* and the key was there, or there was none to find */
  MISSED,      /* there is no such key */
  NOT_STORED,
  WRONG_VALUE, FAULT_TIMEOUT, FAULT_CONNECTION, FAULT_SERVER, FAULT_CLIENT, FAULT_PROTOCOL, STATUSES
  /* clang-format on */
};

struct item {
  const char *key; /* null: the only one that was asked for */
  size_t key_length;
  const char *value;
  size_t length;
};

struct answer {
  enum status status;
  uint32_t count;
  const struct item *items;
};

/* What may be null: refuse, begin, release, barrier, reconnects, renew. */
struct client {
  const char *name, *library;
  const char *(*version)(void);
  const char *capabilities; /* wires and features; `none` is a cache in the process. The kinds follow */
  kind_set kinds;
  /* Names with the values that they may have, N for a number: "nodelay=on|off retries=N …". */
  const char *options;
  /* Writes why a trial cannot be played into `reason`, if so. */
  void (*refuse)(const struct setup *setup, const struct tape *tape, char *reason);
  /* A connected session, or null with the `reason`. */
  void *(*open)(const struct setup *setup, const struct tape *tape, char *reason);
  void (*close)(void *session);
  /* Before a phase, outside of what is timed. */
  void (*begin)(void *session, bool prefill);
  /* The operation, and nothing else: this is what is timed. */
  void (*call)(void *session, const struct operation *op, struct answer *answer);
  /* After it, not timed: free what the answer holds, and see to what failed. */
  void (*release)(void *session, const struct answer *answer);
  /* Ends operations without a reply by an answered command on each connection: how many, or -1. */
  int (*barrier)(void *session);
  /* Connections that were opened again since the session began. */
  uint64_t (*reconnects)(void *session);
  /* Closes the connections, and opens them again: how many. One that fails is opened by the next call. */
  unsigned (*renew)(void *session);
};

/* The clients that are linked in, by name: each client file registers its own. */
const struct client *find_client(const char *name);
void register_client(const struct client *client);

/* To be written once in each client file, after its `static const struct client`. */
/* clang-format off */
#define REGISTER_CLIENT(client) \
  __attribute__((constructor)) static void register_this_client(void) { register_client(&(client)); }
/* clang-format on */

/* The names of all clients, in one line. */
const char *client_names(void);

#endif
