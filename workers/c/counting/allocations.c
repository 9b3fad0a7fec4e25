// Counts the allocations of a program that is started with it (LD_PRELOAD), in the file that
// CACHEMARK_ALLOCATIONS names: two numbers of 64 bits, allocations and their bytes. Only the counting
// pass of `cachemark why` loads it. glibc's own names of malloc, calloc and realloc do the work.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

struct counts {
  _Atomic uint64_t allocations, bytes;
};

// Until the file is mapped, and without one.
static struct counts nowhere;
static struct counts *counts = &nowhere;

__attribute__((constructor)) static void map_counts(void)
{
  const char *path = getenv("CACHEMARK_ALLOCATIONS");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0)
    return;
  void *mapped = mmap(0, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED)
    counts = mapped;
  close(file);
}

static void count(size_t size)
{
  atomic_fetch_add_explicit(&counts->allocations, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&counts->bytes, size, memory_order_relaxed);
}

void *malloc(size_t size)
{
  count(size);
  return __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
  count(number * size);
  return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size)
{
  count(size);
  return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
  count(size);
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **found, size_t alignment, size_t size)
{
  count(size);
  *found = __libc_memalign(alignment, size);
  return *found ? 0 : 12; // ENOMEM
}
