/* Bytes as text. */
#ifndef BASE64_H
#define BASE64_H

#include <stddef.h>
#include <stdint.h>

/* The caller frees it. */
char *base64(const uint8_t *data, size_t size);

#endif
