/* Encodes a histogram: HdrHistogram V2, compressed with zlib, in base64. */
#include "histogram.h"
#include "base64.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { COOKIE = 0x1c849313, COMPRESSED_COOKIE = 0x1c849314, DIGITS = 3, HEADER_BYTES = 40 };
/* A number takes at most nine bytes. */
enum { LONGEST = HEADER_BYTES + 9 * HISTOGRAM_BUCKETS };

void histogram_add(struct histogram *to, const struct histogram *from)
{
  for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
    to->counts[i] += from->counts[i];
}

bool histogram_any(const struct histogram *h)
{
  for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
    if (h->counts[i])
      return true;
  return false;
}

static uint8_t *put32(uint8_t *to, uint32_t value)
{
  value = htobe32(value);
  return (uint8_t *)memcpy(to, &value, 4) + 4;
}

static uint8_t *put64(uint8_t *to, uint64_t value)
{
  value = htobe64(value);
  return (uint8_t *)memcpy(to, &value, 8) + 8;
}

/* ZigZag LEB128, for numbers below 2⁵⁵. */
static uint8_t *put_number(uint8_t *to, int64_t number)
{
  /* cppcheck-suppress shiftTooManyBitsSigned ; every compiler for Linux shifts the sign in */
  uint64_t rest = ((uint64_t)number << 1) ^ (uint64_t)(number >> 63);
  for (; rest > 127; rest >>= 7)
    *to++ = (uint8_t)(rest | 128);
  *to++ = (uint8_t)rest;
  return to;
}

/* Counts in order; a run of n empty buckets is the number -n. */
static uint8_t *put_counts(uint8_t *to, const struct histogram *h, int used)
{
  for (int i = 0; i < used;) {
    int empty = 0;
    while (h->counts[i + empty] == 0)
      empty++;
    to = empty ? put_number(to, -empty) : put_number(to, (int64_t)h->counts[i]);
    i += empty ? empty : 1;
  }
  return to;
}

char *histogram_encode(const struct histogram *h)
{
  int used = HISTOGRAM_BUCKETS;
  while (used && h->counts[used - 1] == 0)
    used--;
  if (!used)
    return NULL;
  static uint8_t plain[LONGEST], packed[LONGEST + LONGEST / 1000 + 64];
  uint8_t *end = put_counts(plain + HEADER_BYTES, h, used);
  uint8_t *to = put32(plain, COOKIE);
  to = put32(to, (uint32_t)(end - plain - HEADER_BYTES));
  to = put32(put32(to, 0), DIGITS);
  to = put64(put64(to, 1), 100000000000);
  double ratio = 1;
  uint64_t bits;
  memcpy(&bits, &ratio, sizeof bits);
  put64(to, bits);
  uLongf size = sizeof packed - 8;
  compress(packed + 8, &size, plain, (uLong)(end - plain));
  put32(put32(packed, COMPRESSED_COOKIE), (uint32_t)size);
  return base64(packed, 8 + size);
}
