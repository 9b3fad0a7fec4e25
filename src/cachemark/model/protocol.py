"""The worker protocol, version 2: messages ↔ JSON lines.

The classes of this module define the protocol: PROTOCOL.md and the JSON Schema are generated from
them. A worker reads requests from stdin and writes answers to stdout, one JSON object for each
line. Its stderr is its log.
"""

from typing import Annotated, Literal, Self, get_args

import msgspec

from cachemark.model.errors import DECODE_ERRORS
from cachemark.model.protocol_results import (
    CAPABILITIES,
    CallLogPath,
    Count,
    CountsHeap,
    GeneratorLag,
    GivesUp,
    GroupTimes,
    HalfOps,
    HalfTime,
    HeapOfRun,
    LeadIn,
    Operation,
    SectionTimes,
    SendLag,
    SliceTime,
    StartUnixNs,
    StoreBytes,
    Timeline,
    WrongReplies,
)
from cachemark.model.setting_types import described as _is

PROTOCOL_VERSION = 2
# `none`: the client is a cache inside the worker's own process.
WIRES = ("text", "binary", "meta", "none")

Phase = Literal["prefill", "warmup", "measure"]


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """A message: it has a `type`, and its fields keep their names within a protocol version."""


# ---------------------------------------------------------------------------------- requests


class Hello(Message, frozen=True, kw_only=True, tag="hello"):
    """The first request: it asks for the worker's identity.

    Answer: `ready` with all of its fields, or `unsupported`.
    """

    protocol: Annotated[int, _is("the protocol version of cachemark")] = PROTOCOL_VERSION


class Prepare(Message, frozen=True, kw_only=True, tag="prepare"):
    """Read the tape, create the clients and open the connections.

    This discards the state of an earlier `prepare`, even if this one fails.

    Answer: `ready`, `unsupported` or `error`.
    """

    servers: Annotated[
        list[str],
        _is(
            "`host:port` or `unix:/path`; the library distributes the keys over several. "
            "Empty: the client is a cache inside the worker's own process"
        ),
    ]
    wire: Annotated[str, _is("`text`, `binary` or `meta`; `none` if there are no servers")] = "text"
    threads: Annotated[int, _is("number of concurrent callers", ge=1)] = 1
    connections: Annotated[
        int,
        _is(
            "total number of connections: a multiple of `threads`, or a divisor of it; "
            "with a divisor, several callers share each connection",
            ge=1,
        ),
    ] = 1
    depth: Annotated[
        int,
        _is(
            "maximum number of outstanding operations on each connection; if callers "
            "share a connection, for each caller",
            ge=1,
        ),
    ] = 1
    refill: Annotated[
        Literal["each", "all"],
        _is(
            "with a depth above 1: `each`: the next operation begins when one has "
            "ended; `all`: the next ones begin when all have ended"
        ),
    ] = "each"
    tape: Annotated[str, _is("path of the tape; docs/tape.md defines the format")]
    segment: Annotated[
        tuple[int, int], _is("[i, n]: this worker plays part i of n parts of the tape")
    ] = (0, 1)
    timeout_ms: Annotated[
        int, _is("an operation or connect that takes longer is a `timeout` error", ge=1)
    ] = 1000
    options: Annotated[
        dict[str, str],
        _is(
            "options of this client; an unknown one is `unsupported`. Every client of a library "
            "has `profile`: `common` (settings that all clients share), `defaults` (the library's "
            "own) or `tuned` (that its documents recommend)"
        ),
    ] = {}


class RunRequest(Message, frozen=True, kw_only=True, tag="run"):
    """Play the tape from its start. Answers: `progress` each second, then one `done` or `error`.

    The run ends after `ops` operations (all callers together), after `duration_ms`, or at a
    `stop`, whichever comes first. A prefill has neither limit: it stores each key of this worker's
    part of the tape once.
    """

    phase: Annotated[Phase, _is("only the figures of `measure` are reported")]
    start_unix_ns: StartUnixNs = 0
    ops: Annotated[int | None, _is("number of operations after which the run ends")] = None
    duration_ms: Annotated[int | None, _is("time after which the run ends")] = None
    calls: CallLogPath = ""
    gives_up: GivesUp = None
    heap: CountsHeap = False


class BeginSlices(Message, frozen=True, kw_only=True, tag="begin_slices"):
    """Get ready to play slices: short parts of the tape, in turn with other clients.

    The worker starts its callers, which then wait, allocates the memory for all results, and
    collects garbage once; between slices it does none of this. The first slice begins at the tape's
    start. Another `begin_slices`, a `run` or a `prepare` discards the slices that were played.

    Answer: `ready`, or `error`.
    """


class Slice(Message, frozen=True, kw_only=True, tag="slice"):
    """Play a slice of the tape. Each caller continues where its last slice ended.

    A caller is a thread, a task, or a connection of the native client.

    Closed loop: after `length_us` a caller starts no more operations. It waits for the outstanding
    ones and, after operations without a reply, for a barrier. Its counted part begins with its
    first completion at or after `lead_in_us`; at `lead_in_us`, if it did not wait for a server then
    (it got no CPU, or its cache is in the process). Later completions count. The counted part ends
    with the last completion or the barrier, but not before the end of the slice.

    Open loop: the tape's time stands still between slices. An operation counts if its intended
    start is `lead_in_us` or more after the start of the slice. Operations that are due in the slice
    end as in a run.

    If `lead_in_us` is `length_us`, nothing counts: a warm-up.

    Answer: `slice_done`, or `error`; without `begin_slices`, an error of the kind `protocol`.
    """

    length_us: Annotated[int, _is("length of the slice; 0: nothing is played", ge=0)]
    lead_in_us: Annotated[int, _is("length of the lead-in; at most `length_us`", ge=0)] = 0
    start_unix_ns: Annotated[
        int, _is("planned start, ns since the epoch. 0 or past: start at once")
    ] = 0


class EndSlices(Message, frozen=True, kw_only=True, tag="end_slices"):
    """End the slices.

    Answer: `done` with the phase `measure`, the sum of all slices; or `error` (without
    `begin_slices`, of the kind `protocol`). `elapsed_ns` and `send_elapsed_ns` are both the sum of
    `elapsed_ns` of all slices. `cpu_user_ns`, `cpu_system_ns`, `reconnects` and `barriers` include
    the lead-ins; all other fields are about the counted parts. There are no `timeline` and no
    `sections`.
    """


class Stop(Message, frozen=True, kw_only=True, tag="stop"):
    """End the current run or slice; its `done` or `slice_done` follows as usual."""


class Bye(Message, frozen=True, kw_only=True, tag="bye"):
    """Close the connections and exit with status 0, without an answer.

    The end of stdin means the same.
    """


# ----------------------------------------------------------------------------------- answers


class Ready(Message, frozen=True, kw_only=True, tag="ready"):
    """The answer to `hello` (with all fields), `prepare` and `begin_slices` (without fields)."""

    protocol: Annotated[int, _is("the protocol version of the worker")] = PROTOCOL_VERSION
    client: Annotated[str, _is("the client's id, such as `python/pymemcache`")] = ""
    library: Annotated[str, _is("the library under test")] = ""
    library_version: Annotated[str, _is("the version that the library itself reports")] = ""
    language: Annotated[str, _is("such as `python`")] = ""
    runtime: Annotated[str, _is("such as `CPython 3.11.7`")] = ""
    capabilities: Annotated[list[str], _is(CAPABILITIES)] = []


class Progress(Message, frozen=True, kw_only=True, tag="progress"):
    """Sent about once a second during a run."""

    ops: Annotated[Count, _is("operations completed since the start of the run")]
    errors: Annotated[Count, _is("operations failed since the start of the run")] = 0


class SliceDone(Message, frozen=True, kw_only=True, tag="slice_done"):
    """The end of a slice."""

    ops: Annotated[Count, _is("counted operations that were `ok`")]
    errors: Annotated[Count, _is("counted operations that failed, wrong values too")]
    lead_in_ops: Annotated[Count, _is("operations of the lead-in, failed ones too")]
    elapsed_ns: SliceTime
    half_ops: HalfOps = 0
    half_ns: HalfTime = 0


class Done(Message, frozen=True, kw_only=True, tag="done"):
    """The end of a run, or of slices."""

    phase: Annotated[Phase, _is("the phase of the request")]
    elapsed_ns: Annotated[
        Count,
        _is(
            "from the window's start to the last reply; after noreply operations, to "
            "the reply of the barrier on the last connection"
        ),
    ]
    send_elapsed_ns: Annotated[
        Count, _is("from the window's start to the return of the last send or call")
    ]
    operations: Annotated[dict[str, Operation], _is("results by kind of operation")]
    send_lag: SendLag = None
    generator_lag: GeneratorLag = None
    max_in_flight: Annotated[Count, _is("maximum number of outstanding operations")] = 0
    queued: Annotated[
        Count, _is("open loop: operations that were due and waited for a free connection")
    ] = 0
    unsent: Annotated[
        Count, _is("open loop: operations that were due in the window and were never sent")
    ] = 0
    reconnects: Annotated[Count, _is("number of times that a lost connection was opened again")] = 0
    renewed: Annotated[Count, _is("the same of connections that `reconnect_after` had closed")] = 0
    failed_connects: Annotated[
        Count, _is("number of attempts to open a connection that failed")
    ] = 0
    cpu_user_ns: Annotated[Count, _is("user CPU time of this run")] = 0
    cpu_system_ns: Annotated[Count, _is("system CPU time of this run")] = 0
    barriers: Annotated[
        Count,
        _is(
            "number of commands with a reply that followed noreply operations "
            "(`version`, never a get)"
        ),
    ] = 0
    overflow: Annotated[
        Count, _is("number of times above 100 s, which the histogram holds as 100 s")
    ] = 0
    timeline: Annotated[
        Timeline | None, _is("data for the test whether the window was stationary")
    ] = None
    sections: SectionTimes = None
    groups: GroupTimes = None
    lead_in: LeadIn = None
    store_bytes: StoreBytes = None
    wrong_replies: WrongReplies = []
    heap: HeapOfRun = None

    @property
    def counts_alone(self) -> Self:
        """What is kept of a prefill or a warm-up: no report reads its times."""
        operations = {
            kind: msgspec.structs.replace(of, response=None, service=None)
            for kind, of in self.operations.items()
        }
        times = ("send_lag", "generator_lag", "timeline", "sections", "groups")
        return msgspec.structs.replace(self, operations=operations, **dict.fromkeys(times))


class Unsupported(Message, frozen=True, kw_only=True, tag="unsupported"):
    """An answer to any request: this worker cannot do this, and a retry would not help."""

    reason: Annotated[str, _is("one sentence, for the report")]
    remedy: Annotated[str, _is("what the user can do to make it work; may be empty")] = ""


class Failure(Message, frozen=True, kw_only=True, tag="error"):
    """An answer to any request: the request failed."""

    kind: Annotated[
        str,
        _is(
            "`connect`, `timeout`, `connection`, `server`, `client`, `protocol`, `tape`, `internal`"
        ),
    ]
    text: Annotated[str, _is("one sentence, for the report")]
    definite: Annotated[
        bool, _is("true if the request certainly had no effect (a timeout is not definite)")
    ] = True


Request = Hello | Prepare | RunRequest | BeginSlices | Slice | EndSlices | Stop | Bye
WorkerAnswer = Ready | Progress | SliceDone | Done | Unsupported | Failure

REQUESTS: tuple[type[Message], ...] = get_args(Request)
ANSWERS: tuple[type[Message], ...] = get_args(WorkerAnswer)

_encoder = msgspec.json.Encoder()
_request_decoder: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_answer_decoder: msgspec.json.Decoder[WorkerAnswer] = msgspec.json.Decoder(WorkerAnswer)


class ProtocolError(Exception):
    """A line is not a message of this protocol; the text says why."""


def encode(message: Message) -> bytes:
    """Return the message as one JSON line, newline included."""
    return _encoder.encode(message) + b"\n"


def decode_request(line: bytes) -> Request:
    """Read one request. Raises ProtocolError."""
    try:
        return _request_decoder.decode(line)
    except DECODE_ERRORS as error:
        raise ProtocolError(f"not a request: {error}: {_excerpt(line)}") from error


def decode_answer(line: bytes) -> WorkerAnswer:
    """Read one answer. Raises ProtocolError."""
    try:
        return _answer_decoder.decode(line)
    except DECODE_ERRORS as error:
        raise ProtocolError(f"not an answer: {error}: {_excerpt(line)}") from error


def _excerpt(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 120 else text[:120] + "…")
