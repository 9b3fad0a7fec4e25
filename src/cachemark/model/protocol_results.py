"""The parts of a worker's results: counts and histograms of operations, timeline, sections, groups.

They are fields of `done` in the worker protocol (protocol.py), and stored in outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from cachemark.model.setting_types import described as _is

EncodedHistogram = Annotated[
    str,
    _is(
        "HdrHistogram V2, compressed, base64; nanoseconds; bounds 1 ns to 100 s; "
        "3 significant digits"
    ),
]
Count = Annotated[int, Meta(ge=0)]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one kind of operation. attempts = ok + all errors + wrong_values."""

    attempts: Annotated[Count, _is("operations started")]
    ok: Annotated[Count, _is("operations completed with a correct and definite answer")]
    hits: Annotated[Count, _is("keys found (reads, touch, delete)")] = 0
    misses: Annotated[Count, _is("keys not found (a miss is an answer, not an error)")] = 0
    not_stored: Annotated[
        Count, _is("`add`, `replace`, `append`, `prepend` or `cas` that stored nothing")
    ] = 0
    wrong_values: Annotated[Count, _is("operations whose reply failed verification")] = 0
    errors: Annotated[
        dict[str, Count],
        _is("failed operations by kind: `timeout`, `connection`, `server`, `client`, `protocol`"),
    ] = {}
    keys: Annotated[Count, _is("keys in the `ok` operations")] = 0
    value_bytes: Annotated[Count, _is("value bytes that the `ok` operations read or wrote")] = 0
    key_bytes: Annotated[Count, _is("bytes of the keys in the `ok` operations")] = 0
    busy_ns: Annotated[
        Count, _is("total time of the `ok` operations inside the library's calls")
    ] = 0
    response: Annotated[
        EncodedHistogram | None,
        _is("completion − intended start; a timeout counts with the time until it ended"),
    ] = None
    service: Annotated[EncodedHistogram | None, _is("completion − actual send")] = None

    @property
    def succeeded(self) -> int:
        """The `ok` operations that did what was asked: without those that stored nothing."""
        return self.ok - self.not_stored

    @property
    def found(self) -> int:
        """The keys of hits. A `cas` that stored nothing has found its key, and is no hit."""
        return max(0, self.hits - self.not_stored)


def attempts_of(operations: Mapping[str, Operation]) -> int:
    """The number of operations of all kinds that were sent."""
    return sum(operation.attempts for operation in operations.values())


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of the window: slices of equal length from its start, all kinds together.

    A slice without an operation is 0 in both lists.
    """

    slice_ns: Annotated[int, _is("length of each slice", ge=1)]
    ok: Annotated[list[Count], _is("`ok` operations that ended in each slice")]
    response_ns: Annotated[list[Count], _is("the sum of the response times of these operations")]


class Sections(msgspec.Struct, frozen=True, kw_only=True):
    """The window in a few parts of equal length, each with its own histogram, all kinds together.

    An operation belongs to the part in which it ended. If it ended after the window, it belongs to
    the last part.
    """

    length_ns: Annotated[int, _is("length of each part", ge=1)]
    ok: Annotated[list[Count], _is("`ok` operations that ended in each part")]
    response: Annotated[
        list[EncodedHistogram | None],
        _is(
            "response times of the operations that ended in each part; timeouts as in `operations`"
        ),
    ]


class Groups(msgspec.Struct, frozen=True, kw_only=True):
    """The times of whole groups of the tape (docs/tape.md), such as one web request.

    Only closed loops without think time have them.

    A group is counted if all of its operations were `ok`, and all were counted in the same run or
    slice. A group is not counted if the end of a run or slice cuts it, or if it began in a
    lead-in.
    """

    length: Annotated[int, _is("number of operations in each group", ge=2)]
    ok: Annotated[Count, _is("groups that are counted")]
    time: Annotated[
        EncodedHistogram | None,
        _is(
            "from the actual send of the group's first operation to the completion of "
            "the one that ended last"
        ),
    ] = None


class WrongReply(msgspec.Struct, frozen=True, kw_only=True):
    """The library's result for a read whose value was wrong."""

    record: Annotated[Count, _is("the number of the record on the tape")]
    value: Annotated[str, _is("the first 4096 bytes of what the library returned, base64")]


SectionTimes = Annotated[Sections | None, _is("data for the intervals within one trial")]
GroupTimes = Annotated[
    Groups | None, _is("closed loop, tapes with groups of at least 2: the times of groups")
]
LeadIn = Annotated[
    dict[str, Operation] | None,
    _is(
        "slices: operations that were played and not counted, by kind, without "
        "histograms. With `operations`, they are everything that the server received"
    ),
]
StoreBytes = Annotated[
    Count | None,
    _is(
        "a cache in the process: the bytes that it uses at the end, as it reports them "
        "itself, with its hash table. If several workers share a cache, each reports all of it"
    ),
]
SendLag = Annotated[EncodedHistogram | None, _is("open loop: actual send − intended start")]
GeneratorLag = Annotated[
    EncodedHistogram | None,
    _is(
        "open loop: the client's own part of the send lag, without the wait for a "
        "free connection: the time when it was ready to send the operation − intended start"
    ),
]
WrongReplies = Annotated[list[WrongReply], _is("runs with a call log: the first 16 wrong values")]
SliceTime = Annotated[
    Count,
    _is(
        "closed loop: the mean length of the counted part over all callers with "
        "operations on the tape, even if they got no CPU at all. Open loop: `length_us` − "
        "`lead_in_us`. 0 if `lead_in_us` is `length_us`"
    ),
]
HalfOps = Annotated[
    Count,
    _is(
        "closed loop: operations in the first half of the counted part, failed "
        "ones too. Of a caller, this half ends with the first completion at or after the "
        "middle between `lead_in_us` and `length_us`; in the middle, if none follows, or if "
        "the caller got no CPU until then"
    ),
]
HalfTime = Annotated[
    Count,
    _is(
        "closed loop: the mean length of the first half over the callers of "
        "`elapsed_ns`. 0 in an open loop, and from workers that do not know it"
    ),
]
