/* The request `prepare`, and the refusals before the prefill. */
#ifndef PREPARE_H
#define PREPARE_H

#include "player.h"

#include <jansson.h>

/* False with the reason in `text` if the request is malformed. Its texts stay in the request. */
bool read_setup(json_t *request, struct setup *setup, char *text);

/* Writes into `text` why a client cannot play the tape with this setup; nothing if it can. */
void refuse(const struct client *client, const struct setup *setup, const struct tape *tape, char *text);

/* All kinds. */
kind_set every_kind(void);

#endif
