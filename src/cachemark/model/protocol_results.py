"""The parts of messages (protocol.py): options of `run`, capabilities, and a worker's results.

The results are fields of `done`, and stored in outcomes.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cachemark.model.setting_types import described as _is

CAPABILITIES = (
    "wire protocols, the library's default first (`text`, `binary`, `meta`, or only `none`); "
    "kinds of operations (`get`, `set_noreply` …); and any of `threads`, `pipeline`, `in_order` "
    "(a caller's operations on a key reach the server in their order, even outstanding together "
    "or without a reply), `refill_all` (it can wait for all outstanding "
    "operations before it begins the next ones), `open_loop`, `unix`, `shared` (callers may share "
    "a connection), `cluster` (several servers), `tls` (it encrypts connections if the option "
    "`tls` is a PEM file with the certificates to trust; `tls_name` is the name that the server's "
    "certificate must have if it is not the address, `tls_client_cert` and `tls_client_key` are "
    "PEM files of the client's own), `login_sasl` and `login_text` (if the option `auth` is "
    "`USER:FILE`, it logs in on each connection: in the binary protocol by SASL PLAIN, in others "
    "by memcached's `set` of user and password; the first line of the file is the password), "
    "`merges` (the client may answer reads without a command for each), `think` (closed loops "
    "with think time), `timeline` (`done` has a `timeline`), "
    "`slices` (`begin_slices`, `slice`, `end_slices`), `groups` (`done` has `groups`), `calls` "
    "(it writes a call log when `run` asks for it); and of `cancel`, `exhaust`, `fork`, "
    "`interrupt`, `kill` the ways in which its callers can give up a call"
)
# The ways in which callers give up a call that is going on. Each is a capability of workers.
Way = Literal["cancel", "exhaust", "fork", "interrupt", "kill"]
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
        Count, _is("operations `add`, `replace`, `append`, `prepend` or `cas` that stored nothing")
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
        """The `ok` operations, except the ones that stored nothing."""
        return self.ok - self.not_stored

    @property
    def found(self) -> int:
        """The keys of hits, without each `cas` that found its key but stored nothing."""
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

    An operation belongs to the part in which it ended. After the window, it belongs to the last
    part.
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

    A group counts if all of its operations were `ok` and counted in the same run or slice: not if
    the end of a run or slice cuts it, or if it began in a lead-in.
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


class HeapWork(msgspec.Struct, frozen=True, kw_only=True):
    """Memory that a run allocated and collected, as the language's runtime counts it.

    It includes the worker's own allocations in the run. Figures that the runtime does not count are
    absent.
    """

    allocations: Annotated[Count | None, _is("objects or blocks allocated")] = None
    allocated_bytes: Annotated[Count | None, _is("the bytes of all of them")] = None
    collections: Annotated[Count | None, _is("garbage collections")] = None
    collection_ns: Annotated[
        Count | None,
        _is("time of these; of collectors that work beside the program, only its pauses"),
    ] = None
    priced: Annotated[
        Count | None, _is("allocations of a small object, made after the run to see their cost")
    ] = None
    priced_ns: Annotated[Count | None, _is("CPU time of these, with their collections")] = None


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
CountsHeap = Annotated[
    bool,
    _is(
        "report `heap` in `done`, if the language's runtime has such counters. It reads them "
        "before and after the run, never within it"
    ),
]
HeapOfRun = Annotated[HeapWork | None, _is("the answer to `heap` of `run`")]
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
        "operations on the tape, even if they got no CPU at all, but only over those tasks "
        "to which a shared pool gave a connection. Open loop: `length_us` − `lead_in_us`. "
        "0 if `lead_in_us` is `length_us`"
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


class GiveUp(msgspec.Struct, frozen=True, kw_only=True):
    """Callers give up some of their calls in a part of the window.

    After `cancel` (of the task, the future or the context), `kill` (of the thread) and `interrupt`
    (a signal's handler ends the call with an exception) the call is a `timeout`. Where signals
    reach one thread only, other callers make their calls as usual. `fork`: before a `get`, a child
    process begins the same call on the same connection and is killed. `exhaust`: before a `get`,
    once in the life of a caller, its process reaches its memory limit within the reply to a longer
    read on the same connection. Then the caller makes its call. A call that cannot be given up
    counts, and is made as usual. Tasks that share one list of operations are one caller.
    """

    way: Annotated[Way, _is("how they give up")]
    every: Annotated[int, _is("every n-th call of each caller that begins in the part", ge=1)]
    after_ms: Annotated[int, _is("how long after the begin of the call; not with `exhaust`", ge=1)]
    begin_ms: Annotated[int, _is("begin of the part, from the window's start", ge=0)]
    end_ms: Annotated[int, _is("end of the part, from the window's start", ge=0)]


GivesUp = Annotated[
    GiveUp | None,
    _is("open loop: callers give up calls; only a worker with the capability is asked"),
]
CallLogPath = Annotated[
    str,
    _is(
        "open loop: path of a call log (docs/call-log.md) that the worker writes when "
        "the run is over, also when a call does not return; empty: no call log"
    ),
]
StartUnixNs = Annotated[
    int,
    _is(
        "planned start, ns since the epoch. 0 or past: start as soon as everything "
        "is ready. Garbage collection and allocation of memory for the results come before the "
        "window, not within it"
    ),
]
