/* Uses every function of the header, as another program would. Prints what went wrong; exit status 0 if nothing. */
#include <cachemark_store.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            printf("line %d: %s (%s)\n", __LINE__, #condition, cm_store_error());     \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

static void items(cm_store *store) {
    char buffer[100];
    size_t length = 0;
    uint32_t flags = 0;
    uint64_t number = 0;
    CHECK(cm_store_get(store, "a", 1, buffer, sizeof buffer, &length, &flags) == CM_STORE_NOT_FOUND);
    CHECK(cm_store_set(store, "a", 1, "one", 3, 7, 0) == CM_STORE_OK);
    CHECK(cm_store_add(store, "a", 1, "two", 3, 0, 0) == CM_STORE_EXISTS);
    CHECK(cm_store_add(store, "b", 1, NULL, 0, 0, 100) == CM_STORE_OK);
    CHECK(cm_store_get(store, "a", 1, buffer, 3, &length, &flags) == CM_STORE_OK);
    CHECK(length == 3 && flags == 7 && memcmp(buffer, "one", 3) == 0);
    CHECK(cm_store_get(store, "a", 1, buffer, 2, &length, NULL) == CM_STORE_BUFFER && length == 3);
    CHECK(cm_store_get(store, "b", 1, NULL, 0, NULL, NULL) == CM_STORE_OK);
    CHECK(cm_store_set(store, "past", 4, "x", 1, 0, -1) == CM_STORE_OK);
    CHECK(cm_store_get(store, "past", 4, buffer, sizeof buffer, &length, NULL) == CM_STORE_NOT_FOUND);
    CHECK(cm_store_incr(store, "n", 1, 1, &number) == CM_STORE_NOT_FOUND);
    CHECK(cm_store_incr(store, "a", 1, 1, &number) == CM_STORE_NOT_A_NUMBER);
    CHECK(cm_store_set(store, "n", 1, "40", 2, 0, 0) == CM_STORE_OK);
    CHECK(cm_store_incr(store, "n", 1, 2, &number) == CM_STORE_OK && number == 42);
    CHECK(cm_store_incr(store, "n", 1, INT64_MIN, &number) == CM_STORE_OK && number == 0);
    CHECK(cm_store_delete(store, "n", 1) == CM_STORE_OK);
    CHECK(cm_store_delete(store, "n", 1) == CM_STORE_NOT_FOUND);
}

static void wrong_arguments(cm_store *store) {
    char key[251] = {0};
    static char huge[2 << 20];
    CHECK(cm_store_set(store, key, 250, "x", 1, 0, 0) == CM_STORE_OK);
    CHECK(cm_store_set(store, key, 251, "x", 1, 0, 0) == CM_STORE_INVALID);
    CHECK(strstr(cm_store_error(), "250 bytes") != NULL);
    CHECK(cm_store_delete(store, "", 0) == CM_STORE_INVALID);
    CHECK(cm_store_set(store, "huge", 4, huge, sizeof huge, 0, 0) == CM_STORE_NO_ROOM);
    CHECK(cm_store_init("no/name", 1 << 20, -1, 0600) == CM_STORE_INVALID);
    CHECK(cm_store_init(NULL, 1 << 20, -1, 0600) == CM_STORE_INVALID);
    CHECK(cm_store_init("a-name", 1 << 20, 9, 0600) == CM_STORE_INVALID);
    CHECK(cm_store_init("a-name", 1 << 20, -2, 0600) == CM_STORE_INVALID);
    CHECK(cm_store_init("a-name", 1 << 20, -1, 01000) == CM_STORE_INVALID);
    CHECK(cm_store_init("a-name", (64 << 10) - 1, -1, 0600) == CM_STORE_INVALID);
    CHECK(strstr(cm_store_error(), "65535") != NULL);
    CHECK(cm_store_open("no-such-store-of-anybody", &store) == CM_STORE_NOT_FOUND);
    CHECK(cm_store_destroy("no-such-store-of-anybody") == CM_STORE_NOT_FOUND);
}

static void whole_store(cm_store *store, const char *dump) {
    cm_store_statistics is = {.size = sizeof is};
    CHECK(cm_store_stat(store, &is) == CM_STORE_OK);
    CHECK(is.items >= 2 && is.item_bytes > 0 && is.table_bytes > 0 && is.limit_bytes == 1 << 20);
    umask(0);
    CHECK(cm_store_dump(store, dump, 1) == CM_STORE_OK);
    struct stat file;
    CHECK(stat(dump, &file) == 0 && (file.st_mode & 0777) == 0600);
    CHECK(cm_store_dump(store, dump, 1) == CM_STORE_EXISTS);
    CHECK(cm_store_dump(store, "/no/such/folder/x", 1) == CM_STORE_SYSTEM);
    CHECK(cm_store_flush(store) == CM_STORE_OK);
    CHECK(cm_store_stat(store, &is) == CM_STORE_OK && is.items == 0);
    is.size = 1;
    CHECK(cm_store_stat(store, &is) == CM_STORE_INVALID);
}

/* In strict mode the kernel kills a process that makes any system call but read, write and exit. */
static void reads_make_no_system_call(cm_store *store) {
    char buffer[1000] = {1};
    CHECK(cm_store_set(store, "k", 1, buffer, sizeof buffer, 0, 0) == CM_STORE_OK);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        size_t length;
        int wrong = cm_store_get(store, "k", 1, buffer, sizeof buffer, &length, NULL) != CM_STORE_OK;
        wrong |= prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0;
        for (int i = 0; i < 100000; i++) {
            wrong |= cm_store_get(store, "k", 1, buffer, sizeof buffer, &length, NULL) != CM_STORE_OK;
            wrong |= cm_store_get(store, "none", 4, buffer, sizeof buffer, &length, NULL) != CM_STORE_NOT_FOUND;
        }
        syscall(SYS_exit, wrong);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A child stores without end and is killed somewhere in it; the parent goes on. */
static void survives_killed_writers(cm_store *store) {
    for (int round = 0; round < 30; round++) {
        int ready[2];
        CHECK(pipe(ready) == 0);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            char value[700] = {2};
            for (unsigned i = 0;; i++) {
                cm_store_set(store, &i, sizeof i, value, sizeof value, 0, 0);
                if (i == 200 && write(ready[1], "x", 1) != 1) _exit(1);
            }
        }
        char byte;
        CHECK(read(ready[0], &byte, 1) == 1);
        CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
        close(ready[0]);
        close(ready[1]);
        CHECK(cm_store_set(store, "after", 5, "x", 1, 0, 0) == CM_STORE_OK);
        CHECK(cm_store_get(store, "after", 5, &byte, 1, NULL, NULL) == CM_STORE_OK && byte == 'x');
    }
}

int main(int count, char **words) {
    const char *name = words[1];
    cm_store *store = NULL;
    CHECK(count == 3);
    CHECK(cm_store_abi() == CM_STORE_ABI);
    CHECK(cm_store_version()[0] >= '0' && cm_store_version()[0] <= '9');
    CHECK(cm_store_init(name, 1 << 20, -1, 0600) == CM_STORE_OK);
    CHECK(cm_store_init(name, 1 << 20, -1, 0600) == CM_STORE_EXISTS);
    CHECK(cm_store_open(name, &store) == CM_STORE_OK);
    items(store);
    wrong_arguments(store);
    whole_store(store, words[2]);
    reads_make_no_system_call(store);
    survives_killed_writers(store);
    CHECK(cm_store_destroy(name) == CM_STORE_OK);
    CHECK(cm_store_set(store, "still here", 10, "x", 1, 0, 0) == CM_STORE_OK);
    cm_store_close(store);
    cm_store_close(NULL);
    return 0;
}
