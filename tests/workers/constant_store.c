/* A stand-in for ConstCache's store in C, for tests: the functions that php/constcache calls, on a plain list of items
   in memory that forked processes share, one at a time. Its semaphores only count the users, as the original's do. */

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/types.h>

enum { SEMAPHORES = 4, USERS = 2, FOR_THIS_USER = 0600 };
enum { MOST_ITEMS = 1000, MOST_KEY_BYTES = 254, MOST_VALUE_BYTES = 1000 };

struct settings {
    key_t semaphores, memory;
    size_t memory_bytes;
    int hash_power;
};

struct item {
    char *key;
    unsigned char key_bytes;
    char *value;
    size_t value_bytes;
    int flags;
};

struct statistics {
    char version[16];
    long total_bytes, free_bytes, others[8];
};

struct stored {
    unsigned char key_bytes;
    size_t value_bytes;
    char key[MOST_KEY_BYTES], value[MOST_VALUE_BYTES];
};

static struct store {
    pthread_mutex_t lock;
    long memory_bytes, used_bytes;
    int count;
    struct stored items[MOST_ITEMS];
} *store;

static struct stored *find(const struct item *wanted) {
    for (int i = 0; i < store->count; i++) {
        struct stored *here = &store->items[i];
        if (here->key_bytes == wanted->key_bytes && !memcmp(here->key, wanted->key, here->key_bytes)) return here;
    }
    return NULL;
}

void fc_conf_init(struct settings *settings) {
    *settings = (struct settings){.hash_power = 16};
}

static int semaphores;

/* A user, whom the kernel takes off when its process ends, and one more, who stays. */
static int count_user(key_t key) {
    struct sembuf user = {.sem_num = USERS, .sem_op = 1, .sem_flg = SEM_UNDO}, stays = {.sem_num = USERS, .sem_op = 1};
    semaphores = semget(key, SEMAPHORES, IPC_CREAT | FOR_THIS_USER);
    if (semaphores < 0 || semop(semaphores, &user, 1) < 0) return -1;
    return semop(semaphores, &stays, 1);
}

int fc_init(const struct settings *settings) {
    if (count_user(settings->semaphores) < 0) return -1;
    store = mmap(NULL, sizeof *store, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (store == MAP_FAILED) return -1;
    store->memory_bytes = (long)settings->memory_bytes;
    store->used_bytes = (long)sizeof(void *) << settings->hash_power;
    pthread_mutexattr_t shared;
    if (pthread_mutexattr_init(&shared) || pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED)) return -1;
    return pthread_mutex_init(&store->lock, &shared) ? -1 : 0;
}

int fc_destroy(void) {
    semctl(semaphores, 0, IPC_RMID);
    return munmap(store, sizeof *store);
}

static int add(const struct item *item) {
    if (store->count == MOST_ITEMS || item->value_bytes - 1 >= MOST_VALUE_BYTES || find(item)) return -1;
    struct stored *here = &store->items[store->count++];
    here->key_bytes = item->key_bytes;
    here->value_bytes = item->value_bytes;
    memcpy(here->key, item->key, item->key_bytes);
    memcpy(here->value, item->value, item->value_bytes);
    store->used_bytes += item->key_bytes + (long)item->value_bytes;
    return 0;
}

int fc_add(const struct item *item) {
    pthread_mutex_lock(&store->lock);
    int status = add(item);
    pthread_mutex_unlock(&store->lock);
    return status;
}

int fc_get(struct item *item) {
    pthread_mutex_lock(&store->lock);
    struct stored *found = find(item);
    pthread_mutex_unlock(&store->lock);
    if (!found) return -1;
    item->value = found->value;
    item->value_bytes = found->value_bytes;
    return 0;
}

int fc_stat(struct statistics *statistics) {
    *statistics = (struct statistics){
        .total_bytes = store->memory_bytes,
        .free_bytes = store->memory_bytes - store->used_bytes,
    };
    return 0;
}
