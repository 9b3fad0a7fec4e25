/* A cache in shared memory, by name: it outlives the process that made it, and is there for every process
 * that may read and write its file in /dev/shm, until somebody destroys it.
 *
 * Any number of processes and threads may use a store at once. cm_store_get takes no lock and makes no system
 * call. A process that is killed, also in the middle of a write, leaves the store usable.
 *
 * A process that may write to the file may also damage it. So give it only to processes that you trust.
 */
#ifndef CACHEMARK_STORE_H
#define CACHEMARK_STORE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface: compare it with cm_store_abi() before anything else. */
#define CM_STORE_ABI 1

/* What functions return. cm_store_error() has a sentence for NO_ROOM, NOT_A_NUMBER and negative ones. */
#define CM_STORE_OK 0
#define CM_STORE_NOT_FOUND 1    /* there is no such item, or no such store */
#define CM_STORE_EXISTS 2       /* there is such an item already, or such a store, or such a file */
#define CM_STORE_NO_ROOM 3      /* the value can never fit */
#define CM_STORE_BUFFER 4       /* the buffer is too small; value_length says how large it has to be */
#define CM_STORE_NOT_A_NUMBER 5 /* the value is no decimal number below 2^64 */
#define CM_STORE_INVALID -1     /* an argument is wrong */
#define CM_STORE_SYSTEM -2      /* the system refused */

/* An open store. Close it when you are done. After fork() parent and child may both use it. */
typedef struct cm_store cm_store;

/* Set `size` to sizeof(cm_store_statistics) before the call. */
typedef struct cm_store_statistics {
    size_t size;
    uint64_t limit_bytes; /* the most memory that the store uses */
    uint64_t item_bytes;  /* of live items, with their headers */
    uint64_t table_bytes; /* of the hash table */
    uint64_t items;
    uint64_t evictions; /* by this process, since it opened the store */
} cm_store_statistics;

/* The version that the library was built with. */
uint32_t cm_store_abi(void);

/* The library's version, such as "1.2.3". */
const char *cm_store_version(void);

/* Why the last call on this thread failed. Valid until the next call that fails. */
const char *cm_store_error(void);

/* Make a store. `name`: 1 to 200 letters, digits, dots, hyphens, underscores. `memory_bytes`: at least 64 KiB.
 * `hash_power`: the hash table has 2^hash_power slots (10 to 32) for ever; with -1 it grows. `mode`: the
 * permissions of its file, such as 0600. The system gives memory when it is written: where /dev/shm has no more, the
 * program that writes is killed (SIGBUS). Returns OK, EXISTS, INVALID or SYSTEM. */
int cm_store_init(const char *name, uint64_t memory_bytes, int hash_power, uint32_t mode);

/* Open a store of the user of this process (the effective one). A store of that name that is somebody else's is
 * refused, and so is a symbolic link. Returns OK, NOT_FOUND, INVALID or SYSTEM. */
int cm_store_open(const char *name, cm_store **store);

/* Open a store of the user with the number `user`. Trust that user: all values may be of that user's making. */
int cm_store_open_of(const char *name, uint32_t user, cm_store **store);

/* Close it; the items stay. NULL is allowed. */
void cm_store_close(cm_store *store);

/* Remove the name of a store of this process's user. Processes that have it open keep it; its memory is freed when
 * they close it. Returns OK, NOT_FOUND, INVALID or SYSTEM. */
int cm_store_destroy(const char *name);

/* The same, of a store of the user with the number `user`. */
int cm_store_destroy_of(const char *name, uint32_t user);

/* Read a value into `buffer`. `value_length` and `flags` may be NULL. Returns OK, NOT_FOUND, BUFFER (nothing was
 * copied) or INVALID. A key has 1 to 250 bytes, here and below. */
int cm_store_get(const cm_store *store, const void *key, size_t key_length, void *buffer, size_t capacity,
                 size_t *value_length, uint32_t *flags);

/* Store a value. `exptime`, as in memcached: 0 is never, up to 30 days are seconds from now, more are seconds since
 * the epoch, negative ones have passed. Returns OK, NO_ROOM or INVALID. */
int cm_store_set(cm_store *store, const void *key, size_t key_length, const void *value, size_t value_length,
                 uint32_t flags, int64_t exptime);

/* The same, if there is no such item. Returns also EXISTS. */
int cm_store_add(cm_store *store, const void *key, size_t key_length, const void *value, size_t value_length,
                 uint32_t flags, int64_t exptime);

/* Returns OK, NOT_FOUND or INVALID. */
int cm_store_delete(cm_store *store, const void *key, size_t key_length);

/* Add to a decimal number (it wraps at 2^64), or subtract from it if `delta` is negative (it stops at 0, and a
 * number that gets shorter has spaces behind it, as in memcached).
 * `number`, which may be NULL, gets the result. Returns OK, NOT_FOUND, NOT_A_NUMBER, NO_ROOM or INVALID. */
int cm_store_incr(cm_store *store, const void *key, size_t key_length, int64_t delta, uint64_t *number);

/* Remove all items. */
int cm_store_flush(cm_store *store);

/* Returns OK or INVALID. It locks the store for a moment. */
int cm_store_stat(cm_store *store, cm_store_statistics *statistics);

/* Write the items to a new file, which its owner alone may read, a line of JSON each; with their values if `values`
 * is not 0. Returns OK, EXISTS, INVALID or SYSTEM. */
int cm_store_dump(cm_store *store, const char *path, int values);

#ifdef __cplusplus
}
#endif

#endif
