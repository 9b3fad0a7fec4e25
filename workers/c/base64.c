/* See base64.h. */
#include "base64.h"

#include <stdlib.h>

char *base64(const uint8_t *data, size_t size)
{
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  char *text = calloc(size / 3 * 4 + 5, 1), *to = text;
  for (size_t i = 0; i < size; i += 3) {
    size_t left = size - i;
    uint32_t bits = (uint32_t)data[i] << 16;
    bits |= left > 1 ? (uint32_t)data[i + 1] << 8 : 0;
    bits |= left > 2 ? data[i + 2] : 0;
    *to++ = letters[bits >> 18];
    *to++ = letters[bits >> 12 & 63];
    *to++ = left > 1 ? letters[bits >> 6 & 63] : '=';
    *to++ = left > 2 ? letters[bits & 63] : '=';
  }
  return text;
}
