/* Slices: lanes that stay ready in their threads, and play on for a short time at each request. */
#ifndef SLICES_H
#define SLICES_H

#include "player.h"

struct slice_result {
  uint64_t ops, errors, lead_in_ops, elapsed_ns, half_ops, half_ns;
};

/* Begin at the tape's start. The last lane that is ready wakes the main thread, as at the end of a slice. */
void slices_begin(struct player *player);

/* Let the lanes play a slice. The last lane that ends wakes the main thread. */
void slices_play(struct player *player, uint64_t length_us, uint64_t lead_in_us, uint64_t start_unix_ns);

/* The result of the played slice; adds it to the sums. */
struct slice_result slices_result(struct player *player);

/* End the lanes' threads, if there are any. */
void slices_end(struct player *player);

#endif
