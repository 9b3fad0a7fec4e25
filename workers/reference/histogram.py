"""HdrHistogram's V2 encoding: nanoseconds in, one line of base64 out."""

import base64
import struct
import zlib
from collections import Counter

COOKIE, COMPRESSED_COOKIE = 0x1C849313, 0x1C849314
DIGITS, LOWEST_NS, HIGHEST_NS = 3, 1, 100_000_000_000


def encode(times_ns: list[int]) -> str:
    """The histogram of the times, in the bounds of the worker protocol."""
    buckets = Counter(bucket(min(max(ns, LOWEST_NS), HIGHEST_NS)) for ns in times_ns)
    counts, position = bytearray(), 0
    for index, count in sorted(buckets.items()):
        if index > position:
            counts += varint(position - index)  # a run of empty buckets is a negative number
        counts += varint(count)
        position = index + 1
    head = struct.pack(">Iiiiqqd", COOKIE, len(counts), 0, DIGITS, LOWEST_NS, HIGHEST_NS, 1.0)
    packed = zlib.compress(head + counts)
    return base64.b64encode(struct.pack(">Ii", COMPRESSED_COOKIE, len(packed)) + packed).decode()


def bucket(value: int) -> int:
    """The index of a value's bucket: its 11 leading bits, which tell 3 digits, and their place."""
    shift = max(0, value.bit_length() - 11)
    return (shift << 10) + (value >> shift)


def varint(number: int) -> bytes:
    """ZigZag, then seven bits a byte, the lowest first; the high bit says that more follow."""
    rest, encoded = (number << 1) ^ (number >> 63), bytearray()
    while rest > 127:
        encoded.append(rest & 127 | 128)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)
