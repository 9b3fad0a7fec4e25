"""The worker protocol, version 1: messages ↔ JSON lines.

This table is the protocol: PROTOCOL.md and the JSON Schema are printed from it. A worker reads
requests on stdin and writes answers on stdout, one JSON object a line; stderr is its log.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cachemark.model.errors import UNREADABLE

PROTOCOL_VERSION = 1
# `none` is that of a cache inside the worker's own process.
WIRES = ("text", "binary", "meta", "none")

Phase = Literal["prefill", "warmup", "measure"]
Histogram = Annotated[
    str,
    Meta(
        description="HdrHistogram V2, compressed, base64; nanoseconds; bounds 1 ns to 100 s; "
        "3 significant digits"
    ),
]
Count = Annotated[int, Meta(ge=0)]


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """What all messages share: a `type`, and fields that are never renamed within a version."""


# ---------------------------------------------------------------------------------- requests


class Hello(Message, frozen=True, kw_only=True, tag="hello"):
    """First request: who are you? Answer: `ready` with the fields of a worker, or `unsupported`."""

    protocol: Annotated[int, Meta(description="the version that the caller speaks")] = (
        PROTOCOL_VERSION
    )


class Prepare(Message, frozen=True, kw_only=True, tag="prepare"):
    """Read the tape, make the clients, open the connections.

    What was prepared before is gone, whatever comes of this one.

    Answer: `ready`, `unsupported` or `error`.
    """

    servers: Annotated[
        list[str],
        Meta(
            description="`host:port` or `unix:/path`; several: the library spreads keys over them; "
            "none: the client is a cache inside the worker's own process"
        ),
    ]
    wire: Annotated[
        str, Meta(description="`text`, `binary`, `meta`; `none` where there are no servers")
    ] = "text"
    threads: Annotated[int, Meta(ge=1, description="callers that run at the same time")] = 1
    connections: Annotated[
        int,
        Meta(
            ge=1,
            description="connections in all: a multiple of `threads`, or a divisor of it, and then "
            "so many callers share each",
        ),
    ] = 1
    depth: Annotated[
        int,
        Meta(
            ge=1,
            description="operations outstanding at most on each connection, or of each caller "
            "where callers share one",
        ),
    ] = 1
    tape: Annotated[str, Meta(description="path of the tape, see docs/tape.md")]
    segment: Annotated[
        tuple[int, int], Meta(description="[i, n]: this worker plays share i of n")
    ] = (0, 1)
    timeout_ms: Annotated[
        int, Meta(ge=1, description="an operation or connect that takes longer is a `timeout`")
    ] = 1000
    options: Annotated[
        dict[str, str],
        Meta(
            description="of this client only; an unknown one is `unsupported`. Every client of a "
            "library knows `profile`: `common` (the ground that all share) or `defaults` (as the "
            "library comes)"
        ),
    ] = {}


class Run(Message, frozen=True, kw_only=True, tag="run"):
    """Play the tape from its start. Answers: `progress` each second, then one `done` or `error`.

    It ends after `ops` operations (of all lanes together) or `duration_ms`, whichever comes
    first, or at a `stop`. Prefill has neither: it stores each key of this worker's share once.
    """

    phase: Annotated[Phase, Meta(description="only `measure` is reported")]
    start_unix_ns: Annotated[
        int,
        Meta(
            description="planned start, ns since the epoch; 0 or past: as soon as all is ready, so "
            "that neither a collection of garbage nor room for figures takes time of the window"
        ),
    ] = 0
    ops: Annotated[int | None, Meta(description="end after this many operations")] = None
    duration_ms: Annotated[int | None, Meta(description="end after this long")] = None


class Stop(Message, frozen=True, kw_only=True, tag="stop"):
    """End the run that is going on; its `done` follows as usual."""


class Bye(Message, frozen=True, kw_only=True, tag="bye"):
    """Close the connections and exit with status 0; no answer. The end of stdin means the same."""


# ----------------------------------------------------------------------------------- answers


class Ready(Message, frozen=True, kw_only=True, tag="ready"):
    """Answer to `hello` (with every field) and to `prepare` (with none)."""

    protocol: Annotated[int, Meta(description="the version that the worker speaks")] = (
        PROTOCOL_VERSION
    )
    client: Annotated[str, Meta(description="the client's id, such as `python/pymemcache`")] = ""
    library: Annotated[str, Meta(description="the library under test")] = ""
    library_version: Annotated[str, Meta(description="as the library itself says")] = ""
    language: Annotated[str, Meta(description="such as `python`")] = ""
    runtime: Annotated[str, Meta(description="such as `CPython 3.11.7`")] = ""
    capabilities: Annotated[
        list[str],
        Meta(
            description="wires, the library's own choice first (`text`, `binary`, `meta`, or only "
            "`none`), operation kinds (`get`, `set_noreply` …), and of `threads`, `pipeline`, "
            "`open_loop`, `unix`, `shared` (callers may share a connection), `cluster` (several "
            "servers), `merges` (reads may be answered without a command of their own), `think` "
            "(a closed loop whose callers think), `course` (`done` has one)"
        ),
    ] = []


class Progress(Message, frozen=True, kw_only=True, tag="progress"):
    """Sent about once a second during a run."""

    ops: Annotated[Count, Meta(description="operations completed since the run began")]
    errors: Annotated[Count, Meta(description="operations failed since the run began")] = 0


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """What one kind of operation came to. attempts = ok + all errors + wrong_values."""

    attempts: Annotated[Count, Meta(description="operations begun")]
    ok: Annotated[Count, Meta(description="completed with a right, definite answer")]
    hits: Annotated[Count, Meta(description="keys found (reads, touch, delete)")] = 0
    misses: Annotated[
        Count, Meta(description="keys not found; a miss is an answer, not an error")
    ] = 0
    not_stored: Annotated[
        Count, Meta(description="`add`, `replace`, `append`, `prepend` or `cas` refused")
    ] = 0
    wrong_values: Annotated[
        Count, Meta(description="operations whose reply failed verification")
    ] = 0
    errors: Annotated[
        dict[str, Count],
        Meta(description="by kind: `timeout`, `connection`, `server`, `client`, `protocol`"),
    ] = {}
    keys: Annotated[Count, Meta(description="keys named in the `ok` operations")] = 0
    value_bytes: Annotated[Count, Meta(description="value bytes read or written by them")] = 0
    key_bytes: Annotated[Count, Meta(description="key bytes named by them")] = 0
    busy_ns: Annotated[
        Count,
        Meta(description="sum over the `ok` operations of the time inside the library's call"),
    ] = 0
    response: Annotated[
        Histogram | None,
        Meta(description="complete − intended start; a timeout counts as long as it lasted"),
    ] = None
    service: Annotated[Histogram | None, Meta(description="complete − actual send")] = None


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """A window as it went, in slices of equal length from its start, all kinds together.

    A slice without an operation is 0 in both lists.
    """

    slice_ns: Annotated[int, Meta(ge=1, description="length of each slice")]
    ok: Annotated[list[Count], Meta(description="`ok` operations that ended in each slice")]
    response_ns: Annotated[list[Count], Meta(description="the sum of their response times")]


class Sections(msgspec.Struct, frozen=True, kw_only=True):
    """A window in a few parts of equal length, all kinds together, each with its own histogram.

    An operation is of the part that it ended in, or of the last if it ended after the window.
    """

    length_ns: Annotated[int, Meta(ge=1, description="length of each part")]
    ok: Annotated[list[Count], Meta(description="`ok` operations that ended in each part")]
    response: Annotated[
        list[Histogram | None],
        Meta(description="response times of what ended in each, timeouts as in `operations`"),
    ]


class Done(Message, frozen=True, kw_only=True, tag="done"):
    """The end of a run."""

    phase: Annotated[Phase, Meta(description="that of the request")]
    elapsed_ns: Annotated[
        Count,
        Meta(
            description="window's start to the last reply; after noreply operations each "
            "connection is ended by a command that is answered"
        ),
    ]
    send_elapsed_ns: Annotated[
        Count, Meta(description="window's start to the return of the last send or call")
    ]
    operations: Annotated[dict[str, Operation], Meta(description="by kind")]
    lag: Annotated[
        Histogram | None, Meta(description="open loop: actual send − intended start")
    ] = None
    late: Annotated[
        Histogram | None,
        Meta(
            description="open loop: the client's own part of the lag: when it came to the "
            "operation − intended start, without the wait for a connection"
        ),
    ] = None
    max_in_flight: Annotated[Count, Meta(description="most operations outstanding at once")] = 0
    bound: Annotated[
        Count,
        Meta(description="open loop: operations that were due and had to wait for a connection"),
    ] = 0
    unsent: Annotated[
        Count, Meta(description="open loop: due in the window, never sent before the end")
    ] = 0
    reconnects: Annotated[Count, Meta(description="connections that were opened again")] = 0
    cpu_user_ns: Annotated[Count, Meta(description="this process, during the run")] = 0
    cpu_system_ns: Annotated[Count, Meta(description="the same, in the kernel")] = 0
    barriers: Annotated[
        Count,
        Meta(description="answered commands sent to end noreply operations (`version`, not a get)"),
    ] = 0
    beyond: Annotated[
        Count, Meta(description="times above 100 s, which a histogram holds as 100 s")
    ] = 0
    course: Annotated[
        Course | None, Meta(description="what the window's stationarity is judged by")
    ] = None
    sections: Annotated[
        Sections | None, Meta(description="what intervals within one trial are made from")
    ] = None


class Unsupported(Message, frozen=True, kw_only=True, tag="unsupported"):
    """An answer to any request: this worker cannot do that, and never could."""

    reason: Annotated[str, Meta(description="one sentence, for the report")]
    remedy: Annotated[str, Meta(description="what would make it work; may be empty")] = ""


class Failure(Message, frozen=True, kw_only=True, tag="error"):
    """An answer to any request: it failed."""

    kind: Annotated[
        str,
        Meta(
            description="`connect`, `timeout`, `connection`, `server`, `client`, `protocol`, "
            "`tape`, `internal`"
        ),
    ]
    text: Annotated[str, Meta(description="one sentence, for the report")]
    definite: Annotated[
        bool, Meta(description="surely nothing was done (a timeout is not definite)")
    ] = True


Request = Hello | Prepare | Run | Stop | Bye
Answer = Ready | Progress | Done | Unsupported | Failure

REQUESTS: tuple[type[Message], ...] = (Hello, Prepare, Run, Stop, Bye)
ANSWERS: tuple[type[Message], ...] = (Ready, Progress, Done, Unsupported, Failure)

_encoder = msgspec.json.Encoder()
_request_decoder: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_answer_decoder: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)


class ProtocolError(Exception):
    """A line that is no message of this protocol; the text says what was wrong with it."""


def encode(message: Message) -> bytes:
    """Return the message as one JSON line, newline included."""
    return _encoder.encode(message) + b"\n"


def decode_request(line: bytes) -> Request:
    """Read one request. Raises ProtocolError."""
    try:
        return _request_decoder.decode(line)
    except UNREADABLE as error:
        raise ProtocolError(f"not a request: {error}: {_excerpt(line)}") from error


def decode_answer(line: bytes) -> Answer:
    """Read one answer. Raises ProtocolError."""
    try:
        return _answer_decoder.decode(line)
    except UNREADABLE as error:
        raise ProtocolError(f"not an answer: {error}: {_excerpt(line)}") from error


def _excerpt(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 120 else text[:120] + "…")
