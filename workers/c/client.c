/* The registry of clients. */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CLIENTS = 32 };

static const struct client *clients[MOST_CLIENTS];
static unsigned client_count;

void register_client(const struct client *client)
{
  if (client_count == MOST_CLIENTS)
    abort(); /* before main: raise MOST_CLIENTS */
  clients[client_count++] = client;
}

const struct client *find_client(const char *name)
{
  for (unsigned i = 0; i < client_count; i++)
    if (!strcmp(clients[i]->name, name))
      return clients[i];
  return NULL;
}

const char *client_names(void)
{
  static char names[MOST_CLIENTS * 32];
  size_t used = 0;
  for (unsigned i = 0; i < client_count && used < sizeof names; i++)
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", clients[i]->name);
  return names;
}
