"""The call log of docs/call-log.md, written from the lanes' records after the run."""

from __future__ import annotations

import base64
import struct
from itertools import chain, islice
from pathlib import Path

from tape import READS
from verify import CLIENT, CONNECTION, FOUND_MASK, PROTOCOL, SERVER, SIZE_BIT, TIMEOUT, WRONG

_HEADER = struct.pack("<8s2I", b"CMCALLS\0", 1, 32)
_RECORD = struct.Struct("<QQIIHB5x")
_MOST_RECORDS = 1 << 20
_OK, _MISS = 0, 1
_FAILED = {WRONG: 2, TIMEOUT: 3, CONNECTION: 4, SERVER: 5, CLIENT: 6, PROTOCOL: 7}
_MOST_WRONG_REPLIES, _MOST_WRONG_BYTES = 16, 4096


def write(path, records, facts_of):
    """Write the calls of all lanes; `facts_of` tells the kind of a tape record. Raises OSError."""
    calls = chain.from_iterable(
        _packed(caller, record, facts_of) for caller, record in enumerate(records)
    )
    Path(path).write_bytes(_HEADER + b"".join(islice(calls, _MOST_RECORDS)))


def wrong_replies(records):
    """The first wrong values of all lanes, for the message."""
    found = islice(chain.from_iterable(record.wrong for record in records), _MOST_WRONG_REPLIES)
    return [
        {"record": number, "value": base64.b64encode(_bytes(answer)[:_MOST_WRONG_BYTES]).decode()}
        for number, answer in found
    ]


def keep_wrong(wrong, number, answer):
    """Note a wrong value, if there is still room."""
    if len(wrong) < _MOST_WRONG_REPLIES:
        wrong.append((number, answer))


def _packed(caller, record, facts_of):
    # A hanging lane may record its call at this moment: read its lists up to the shortest one.
    for begin, took, number, code in zip(record.begins, record.times, record.numbers, record.codes):
        if code < 0:
            yield _RECORD.pack(begin, took, number, 0, caller, _FAILED[code])
        else:
            missed = facts_of(number)[0] in READS and not code & FOUND_MASK
            size = code >> SIZE_BIT
            yield _RECORD.pack(begin, took, number, size, caller, _MISS if missed else _OK)


def _bytes(answer):
    """The answer of a library to a read, as bytes: some return the value inside of something."""
    if isinstance(answer, dict) and len(answer) == 1:
        (answer,) = answer.values()
    value = answer[0] if isinstance(answer, tuple) and answer else getattr(answer, "value", answer)
    return value if isinstance(value, bytes) else str(value).encode()
