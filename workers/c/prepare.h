/* The request `prepare`, and the refusals before anything is timed. */
#ifndef PREPARE_H
#define PREPARE_H

#include "player.h"

#include <jansson.h>

/* False with the reason in `text` where the request is none. The words stay in the request. */
bool read_setup(json_t *request, struct setup *setup, char *text);

/* Writes why a client cannot play a tape in this way into `text`, if so. */
void refuse(const struct client *client, const struct setup *setup, const struct tape *tape, char *text);

/* Every kind that there is. */
kind_set every_kind(void);

#endif
