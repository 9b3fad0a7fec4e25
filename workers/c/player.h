/* Plays a share of the tape with a client: opens it, runs phases. */
#ifndef PLAYER_H
#define PLAYER_H

#include "recorder.h"
#include "timeline.h"
#include "window.h"

#include <pthread.h>

struct lane {
  _Alignas(64) struct player *player;
  void *session;
  pthread_t thread;
  struct operation *operations;  /* its share of the tape */
  uint64_t count, place, limit;
  struct recorder *recorders[SECTIONS][KINDS];  /* of the kinds that it plays */
  struct recorder **section;                  /* those of the section that is going on */
  struct timeline timeline;
  struct histogram *lag;
  uint8_t *used;
  uint64_t sent_ns, ended_ns, queued, unsent, barriers, reconnects_before;
  /* Read by the main thread while the lane plays. */
  _Atomic uint64_t done, failed, called_ns;
};

struct player {
  const struct client *client;
  const struct setup *setup;
  struct tape *tape;
  uint64_t lane_count, lanes_in_all;
  struct lane *lanes;
  struct window window;
  bool prefill, open_loop, quiet;
  _Atomic uint64_t in_flight, peak, playing;
  int over_fd;  /* gets a byte when the last lane is done */
};

/* Plays the phase that was begun, in a thread of the lane's own. */
void *lane_play(void *lane);

/* Null with the `reason` where it cannot connect. Takes the tape. */
struct player *player_open(const struct client *client, const struct setup *setup, struct tape *tape,
                           int over_fd, char *reason);
void player_close(struct player *player);

enum { NO_LIMIT = -1 };
void player_start(struct player *player, bool prefill, int64_t ops, int64_t duration_ms,
                  uint64_t start_unix_ns);
void player_stop(struct player *player);
void player_join(struct player *player);

#endif
