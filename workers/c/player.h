/* Plays a share of the tape with a client: opens it, runs phases. */
#ifndef PLAYER_H
#define PLAYER_H

#include "call_log.h"
#include "groups.h"
#include "recorder.h"
#include "timeline.h"
#include "window.h"

#include <pthread.h>
#include <sys/resource.h>

/* The sections of a lane's recorders that slices use. */
enum { COUNTED, LEAD_IN };

/* The state of slices, which slices.c plays. */
struct slices {
  bool open;             /* the lanes have threads */
  bool played;           /* the lanes' recorders hold lead-ins */
  bool ending;           /* the threads must end */
  _Atomic uint32_t turn; /* number of requested slices; the lanes' threads wait for it to change */
  uint64_t length_ns, lead_in_ns;
  uint64_t tape_ns;     /* the tape's time at the end of the last slice */
  struct rusage before; /* the slice's begin */
  struct totals totals; /* of all slices */
};

struct lane {
  _Alignas(64) struct player *player;
  void *session;
  pthread_t thread;
  struct operation *operations; /* its share of the tape */
  uint64_t count, place, limit;
  uint64_t next; /* number of operations played since the tape's start */
  /* One for each section and kind that it plays. Slices use two sections: the counted parts, and the lead-ins. */
  struct recorder *recorders[SECTIONS][KINDS];
  struct recorder **section; /* the recorders of the current section */
  struct timeline timeline;
  struct histogram *lag;
  struct groups *groups;
  struct call_log calls; /* empty unless the run asked for a call log */
  /* The end of the slice's lead-in, then of the first half of the counted part; UINT64_MAX: no part follows. */
  uint64_t next_part_ns;
  uint64_t middle_ns, half_ended_ns, half_played;        /* of the counted part; half_ended_ns 0: it has not ended */
  uint64_t counted_since_ns, lead_in_ok, lead_in_failed; /* the begin of the counted part; operations before it */
  bool counting;
  uint8_t *used;
  uint64_t sent_ns, ended_ns, queued, unsent, barriers, reconnects_before, renewed, failed_connects;
  uint64_t calls_made; /* on connections that are renewed */
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
  uint64_t reconnect_after; /* calls; UINT64_MAX: connections stay */
  bool in_process;          /* its client has no server */
  bool prefill, open_loop, quiet;
  bool prefilled; /* a prefill has begun */
  _Atomic uint64_t in_flight, peak, playing;
  int over_fd; /* gets a byte when the last lane is done */
  struct slices slices;
};

/* In lane.c. Wait for the window's start, and play until it ends. */
void lane_play_window(struct lane *lane);
/* Begin the slice's counted part, at `since_ns`. */
void lane_begin_counting(struct lane *lane, uint64_t since_ns);
/* A lane's thread has finished; the last one wakes the main thread. */
void lane_tell_over(struct player *player);

/* Null with the `reason` if it cannot connect. Takes ownership of the tape. */
struct player *player_open(
    const struct client *client, const struct setup *setup, struct tape *tape, int over_fd, char *reason);
void player_close(struct player *player);
/* Discard the last run's results, and go to the tape's start. No call log. */
void player_reset(struct player *player, bool prefill, int64_t ops, int64_t duration_ms);

enum { NO_LIMIT = -1 };
/* `logs_calls`: the lanes of an open loop note their calls. */
void player_start(
    struct player *player, bool prefill, int64_t ops, int64_t duration_ms, uint64_t start_unix_ns, bool logs_calls);
/* Wait for the lanes' threads to end. */
void player_join(struct player *player);
/* The times of the run that has ended. */
struct totals player_totals(struct player *player);

#endif
