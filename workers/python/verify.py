"""The result of a library's answer, as one number that the loop can record quickly.

0 or more: the operation is done; the low 17 bits are the keys found (for `add` and `replace`: 1 if
refused; for `cas` 1 if stored, 2 if refused), the higher bits the value bytes read or written.
Negative: it failed.
"""

from __future__ import annotations

import socket

WRONG, TIMEOUT, CONNECTION, SERVER, CLIENT, PROTOCOL = range(-1, -7, -1)
ERRORS = {TIMEOUT: "timeout", CONNECTION: "connection", SERVER: "server", CLIENT: "client",
          PROTOCOL: "protocol"}  # fmt: skip
SIZE_BIT = 17
FOUND_MASK = (1 << SIZE_BIT) - 1

# The value of an item with other flags than 0: it equals no value of the tape.
OTHER_FLAGS = "other flags than 0"


def plain(value, flags):
    """A value that was read, if its flags are 0, as in all items of cachemark."""
    return value if flags == 0 else OTHER_FLAGS


def found(value, op):
    """A read of one key: the value, or None for a miss."""
    if value == op.value:
        return op.ok_code
    if value is None:
        return 0
    return len(value) << SIZE_BIT | 1 if op.verify(0, value) else WRONG


def found_many(values, op):
    """A read of many keys: a dict of the values that were found."""
    if values == op.pairs:
        return op.ok_code
    hits = size = 0
    for position, key in enumerate(op.keys):
        value = values.get(key)
        if value is None:
            continue
        if not op.verify(position, value):
            return WRONG
        hits += 1
        size += len(value)
    return size << SIZE_BIT | hits if hits == len(values) else WRONG


def stored(result, op):
    """A `set`: true if it was stored."""
    return op.ok_code if result else SERVER


def stored_many(failed, op):
    """A `set` of many keys: the keys that were not stored."""
    return SERVER if failed else op.ok_code


def accepted(result, op):
    """An `add` or `replace`: false if it was refused, which is an answer."""
    return op.ok_code if result else op.ok_code | 1


def swapped(answer, op):
    """A `cas`: the value that its `gets` brought, None for a miss, and whether it was stored.

    It was not if the item was changed or deleted since.
    """
    value, result = answer
    if value is None:
        return 0
    if not op.verify(0, value):
        return WRONG
    return op.ok_code | (1 if result else 2)


def counted(number, op):
    """An `incr` or `decr`: the new number, None without a counter."""
    if number is None:
        return 0
    return op.ok_code if isinstance(number, int) else WRONG


def known(result, op):
    """A `delete` or `touch`: false if there was no such key."""
    return op.ok_code if result else 0


def sent(_, op):
    """An operation without a reply, or one that raises an exception on any failure."""
    return op.ok_code


def network_fault(error):
    """The failure behind an exception of the socket layer; None if it is none."""
    if isinstance(error, socket.timeout):  # before Python 3.10 this is no TimeoutError
        return TIMEOUT
    if isinstance(error, (OSError, EOFError)):
        return TIMEOUT if isinstance(error, TimeoutError) else CONNECTION
    return None


def reply_fault(text):
    """The failure behind a server's reply, which a library passes on as text."""
    if "SERVER_ERROR" in text:
        return SERVER
    return CLIENT if "ERROR" in text else PROTOCOL
