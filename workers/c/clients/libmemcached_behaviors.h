/* The behaviours of libmemcached that a trial sets. */
#ifndef LIBMEMCACHED_BEHAVIORS_H
#define LIBMEMCACHED_BEHAVIORS_H

#include "../client.h"

#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Behaviours of the library that are options here; without the option, the library's default holds. */
/* clang-format off */
static const struct { const char *name; memcached_behavior_t behavior; } BEHAVIORS[] = {
    {"no_block", MEMCACHED_BEHAVIOR_NO_BLOCK}, {"keepalive", MEMCACHED_BEHAVIOR_TCP_KEEPALIVE},
    {"verify_key", MEMCACHED_BEHAVIOR_VERIFY_KEY}, {"sort_hosts", MEMCACHED_BEHAVIOR_SORT_HOSTS},
    {"socket_send_size", MEMCACHED_BEHAVIOR_SOCKET_SEND_SIZE}, {"socket_recv_size", MEMCACHED_BEHAVIOR_SOCKET_RECV_SIZE},
    {"io_msg_watermark", MEMCACHED_BEHAVIOR_IO_MSG_WATERMARK},
    {"io_bytes_watermark", MEMCACHED_BEHAVIOR_IO_BYTES_WATERMARK},
};

static const struct { const char *name; memcached_hash_t hash; } HASHES[] = {
    {"default", MEMCACHED_HASH_DEFAULT}, {"md5", MEMCACHED_HASH_MD5}, {"crc", MEMCACHED_HASH_CRC},
    {"fnv1_64", MEMCACHED_HASH_FNV1_64}, {"fnv1a_64", MEMCACHED_HASH_FNV1A_64}, {"fnv1_32", MEMCACHED_HASH_FNV1_32},
    {"fnv1a_32", MEMCACHED_HASH_FNV1A_32}, {"jenkins", MEMCACHED_HASH_JENKINS}, {"murmur", MEMCACHED_HASH_MURMUR},
};
/* clang-format on */

/* The value of a behaviour for an option's text. */
static uint64_t behavior_value(const char *text)
{
  return !strcmp(text, "on") ? 1 : !strcmp(text, "off") ? 0 : strtoull(text, NULL, 10);
}

/* Set the behaviours of the options; writes the `reason` if the library refuses one. */
static void behave(memcached_st *handle, const struct setup *setup, char *reason)
{
  for (size_t i = 0; i < sizeof BEHAVIORS / sizeof *BEHAVIORS; i++) {
    const char *text = option_value(setup, BEHAVIORS[i].name, NULL);
    if (text && memcached_behavior_set(handle, BEHAVIORS[i].behavior, behavior_value(text)) != MEMCACHED_SUCCESS)
      snprintf(reason, REASON_SIZE, "%s: the library does not take %s=%s", setup->wire, BEHAVIORS[i].name, text);
  }
  const char *hash = option_value(setup, "hash", NULL);
  for (size_t i = 0; hash && i < sizeof HASHES / sizeof *HASHES; i++)
    if (!strcmp(hash, HASHES[i].name)
        && memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_HASH, HASHES[i].hash) != MEMCACHED_SUCCESS)
      snprintf(reason, REASON_SIZE, "%s: the library does not take hash=%s", setup->wire, hash);
}

static void configure(memcached_st *handle, const struct setup *setup)
{
  uint64_t timeout_ms = setup->timeout_ms;
  memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, !strcmp(setup->wire, "binary"));
  if (is_common(setup)) {
    memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_POLL_TIMEOUT, timeout_ms);
    memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT, timeout_ms);
    memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_SND_TIMEOUT, timeout_ms * 1000);
    memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_RCV_TIMEOUT, timeout_ms * 1000);
  }
  memcached_behavior_set(
      handle, MEMCACHED_BEHAVIOR_TCP_NODELAY, is_on(setup, "nodelay", is_common(setup) ? "on" : "off"));
  if (!strcmp(option_value(setup, "hashing", "default"), "ketama"))
    memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1);
  if (!strcmp(option_value(setup, "distribution", "modula"), "consistent"))
    memcached_behavior_set_distribution(handle, MEMCACHED_DISTRIBUTION_CONSISTENT);
}

#endif
