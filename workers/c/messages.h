/* The longer answers of the worker protocol. */
#ifndef MESSAGES_H
#define MESSAGES_H

#include "slices.h"

#include <jansson.h>

json_t *error_message(const char *kind, const char *text, bool definite);
json_t *slice_message(struct slice_result slice);

/* The end of a run, or of slices. */
json_t *done_message(const struct player *player, const char *phase, const struct totals *totals);

#endif
