/* A histogram of ns that counts without allocating: 1 ns to 100 s, three digits. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 28 * 1024 };

struct histogram {
  uint64_t counts[HISTOGRAM_BUCKETS];
};

static inline void histogram_record(struct histogram *h, uint64_t ns)
{
  if (ns < 1)
    ns = 1;
  if (ns > 100000000000)
    ns = 100000000000;
  /* 2048 steps up to the first power of two that has them; then 1024 to each doubling. */
  unsigned shift = 53 - (unsigned)__builtin_clzll(ns | 2047);
  h->counts[((uint64_t)shift << 10) + (ns >> shift)]++;
}

bool histogram_any(const struct histogram *h);
void histogram_add(struct histogram *to, const struct histogram *from);

/* HdrHistogram V2, compressed, base64; null if it is empty. The caller frees it. */
char *histogram_encode(const struct histogram *h);

#endif
