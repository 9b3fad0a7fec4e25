// Changes of libmemcached, one of them at a time: the environment variable
// PLANTED names it. The linker takes these calls before the functions of the C
// library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 512, LARGE = 8192, SHORT_NS = 50000 };

typedef ssize_t send_call(int, const void *, size_t, int);
typedef ssize_t recv_call(int, void *, size_t, int);

static send_call *real_send;
static recv_call *real_recv;
static const char *planted = "";
static int pipe_ends[2];
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static volatile char *pages;
static void *volatile kept;
static sem_t asked, done;
static struct {
  int socket, flags;
  const void *data;
  size_t size;
  ssize_t sent;
} task;

static int is(const char *name) { return !strcmp(planted, name); }

__attribute__((constructor)) static void begin(void) {
  real_send = (send_call *)dlsym(RTLD_NEXT, "send");
  real_recv = (recv_call *)dlsym(RTLD_NEXT, "recv");
  planted = getenv("PLANTED") ? getenv("PLANTED") : "";
  pages = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutex_lock(&held);
  if (pipe(pipe_ends))
    abort();
}

static int connected_like(int like) {
  struct sockaddr_storage address;
  socklen_t size = sizeof address;
  if (getpeername(like, (struct sockaddr *)&address, &size))
    return -1; /* not yet */
  int other = socket(address.ss_family, SOCK_STREAM, 0);
  (void)!connect(other, (struct sockaddr *)&address,
                 size); /* a server may have gone */
  return other;
}

static void ask(int socket) {
  char reply[4];
  struct pollfd answer = {.fd = socket, .events = POLLIN};
  real_send(socket, "mn\r\n", sizeof reply, 0);
  poll(&answer, 1, -1);
  real_recv(socket, reply, sizeof reply, 0);
}

static void wait_for_lock(int socket) {
  (void)socket;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += SHORT_NS;
  if (until.tv_nsec >= 1000000000)
    until.tv_sec++, until.tv_nsec -= 1000000000;
  pthread_mutex_timedlock(&held, &until);
}

static void touch(int socket) {
  (void)socket;
  static int next;
  pages[PAGE * next] = 1;
  next = (next + 1) % PAGES;
  if (!next)
    madvise((void *)pages, PAGES * PAGE, MADV_DONTNEED);
}

static void allocate(size_t size, int times) {
  for (int i = 0; i < times; i++)
    kept = malloc(size), free(kept);
}

static void set_no_delay(int socket, int on) {
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void connect_again(int socket) { close(connected_like(socket)); }
static void set_again(int socket) { set_no_delay(socket, 1); }
static void set_timer(int socket) {
  (void)socket;
  setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {10000, 0}}, 0);
}

/* The library itself has an empty read now and then. */
static void read_nothing(int socket) {
  char nothing;
  for (int i = 0; i < 5; i++)
    real_recv(socket, &nothing, 1, MSG_DONTWAIT);
}

static void poll_often(int socket) {
  (void)socket;
  for (int i = 0; i < 3; i++)
    poll(0, 0, 0);
}

static void wake(int socket) {
  char letter = 'a';
  (void)socket;
  if (write(pipe_ends[1], &letter, 1) == 1)
    (void)!read(pipe_ends[0], &letter, 1);
}

/* A reply that comes meanwhile is one wait less. */
static void sleep_shortly(int socket) {
  (void)socket;
  for (int i = 0; i < 5; i++)
    nanosleep(&(struct timespec){0, SHORT_NS}, 0);
}

static void look(int socket) {
  struct stat root;
  (void)socket;
  stat("/", &root);
}

static void map_page(int socket) {
  (void)socket;
  munmap(mmap(0, PAGE, PROT_READ, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0), PAGE);
}

static void call_often(int socket) {
  (void)socket;
  for (int i = 0; i < 3; i++)
    syscall(SYS_getppid);
}

static void allocate_often(int socket) { (void)socket, allocate(16, 50); }
static void allocate_much(int socket) { (void)socket, allocate(LARGE, 1); }

static const struct {
  const char *name;
  void (*call)(int);
} besides[] = {
    {"a connection", connect_again},
    {"another request", ask},
    {"an empty read", read_nothing},
    {"polls", poll_often},
    {"a timer", set_timer},
    {"options", set_again},
    {"a lock", wait_for_lock},
    {"a pipe", wake},
    {"a sleep", sleep_shortly},
    {"garbage", allocate_often},
    {"a large buffer", allocate_much},
    {"a file", look},
    {"a page", map_page},
    {"a fault", touch},
    {"other calls", call_often},
};

static void beside(int socket) {
  for (size_t i = 0; i < sizeof besides / sizeof *besides; i++)
    if (is(besides[i].name))
      besides[i].call(socket);
}

static void *send_tasks(void *nothing) {
  for (;; sem_post(&done)) {
    sem_wait(&asked);
    task.sent = real_send(task.socket, task.data, task.size, task.flags);
  }
  return nothing;
}

static ssize_t send_in_thread(int socket, const void *data, size_t size,
                              int flags) {
  static pthread_t thread;
  if (!thread)
    sem_init(&asked, 0, 0), sem_init(&done, 0, 0),
        pthread_create(&thread, 0, send_tasks, 0);
  task.socket = socket, task.data = data, task.size = size, task.flags = flags;
  sem_post(&asked);
  sem_wait(&done);
  return task.sent;
}

/* With one more key, which the server does not have. */
static ssize_t send_longer(int socket, const char *line, size_t size,
                           int flags) {
  char longer[LARGE];
  int length =
      snprintf(longer, sizeof longer, "%.*s missing\r\n", (int)size - 2, line);
  return real_send(socket, longer, (size_t)length, flags) < 0 ? -1
                                                              : (ssize_t)size;
}

ssize_t send(int socket, const void *data, size_t size, int flags) {
  if (size > 3 && (is("two writes") || is("Nagle"))) {
    if (is("Nagle"))
      set_no_delay(socket, 0);
    ssize_t sent = real_send(socket, data, 3, flags);
    return sent < 0 ? sent
                    : sent + real_send(socket, (const char *)data + sent,
                                       size - (size_t)sent, flags);
  }
  if (is("another thread"))
    return send_in_thread(socket, data, size, flags);
  if (is("a longer request") && size > 3 && !memcmp(data, "get", 3))
    return send_longer(socket, data, size, flags);
  beside(socket);
  return real_send(socket, data, size, flags);
}

ssize_t recv(int socket, void *buffer, size_t size, int flags) {
  ssize_t got = real_recv(socket, buffer,
                          is("small reads") && size > 16 ? 16 : size, flags);
  if (got > 0 && is("a copy"))
    allocate((size_t)got, 1);
  return got;
}
