"""The worker protocol, version 2: messages ↔ JSON lines.

The classes of this module define the protocol: PROTOCOL.md and the JSON Schema are generated from
them. A worker reads requests from stdin and writes answers to stdout, one JSON object for each
line. Its stderr is its log.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cachemark.model.errors import DECODE_ERRORS

PROTOCOL_VERSION = 2
# `none`: the client is a cache inside the worker's own process.
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
    """A message: it has a `type`, and its fields keep their names within a protocol version."""


# ---------------------------------------------------------------------------------- requests


class Hello(Message, frozen=True, kw_only=True, tag="hello"):
    """The first request: it asks for the worker's identity.

    Answer: `ready` with all of its fields, or `unsupported`.
    """

    protocol: Annotated[int, Meta(description="the protocol version of cachemark")] = (
        PROTOCOL_VERSION
    )


class Prepare(Message, frozen=True, kw_only=True, tag="prepare"):
    """Read the tape, create the clients and open the connections.

    This discards the state of an earlier `prepare`, even if this one fails.

    Answer: `ready`, `unsupported` or `error`.
    """

    servers: Annotated[
        list[str],
        Meta(
            description="`host:port` or `unix:/path`. With several, the library distributes the "
            "keys over them. An empty list: the client is a cache inside the worker's own process"
        ),
    ]
    wire: Annotated[
        str, Meta(description="`text`, `binary` or `meta`; `none` if there are no servers")
    ] = "text"
    threads: Annotated[int, Meta(ge=1, description="number of concurrent callers")] = 1
    connections: Annotated[
        int,
        Meta(
            ge=1,
            description="total number of connections: a multiple of `threads`, or a divisor of it; "
            "with a divisor, several callers share each connection",
        ),
    ] = 1
    depth: Annotated[
        int,
        Meta(
            ge=1,
            description="maximum number of outstanding operations on each connection; if callers "
            "share a connection, of each caller",
        ),
    ] = 1
    tape: Annotated[str, Meta(description="path of the tape; docs/tape.md defines the format")]
    segment: Annotated[
        tuple[int, int], Meta(description="[i, n]: this worker plays part i of n parts of the tape")
    ] = (0, 1)
    timeout_ms: Annotated[
        int,
        Meta(ge=1, description="an operation or connect that takes longer is a `timeout` error"),
    ] = 1000
    options: Annotated[
        dict[str, str],
        Meta(
            description="options of this client; an unknown one is `unsupported`. Every client of "
            "a library has `profile`: `common` (the settings that all clients share) or `defaults` "
            "(the library's own settings)"
        ),
    ] = {}


class Run(Message, frozen=True, kw_only=True, tag="run"):
    """Play the tape from its start. Answers: `progress` each second, then one `done` or `error`.

    The run ends after `ops` operations (all callers together), after `duration_ms`, or at a
    `stop`, whichever comes first. A prefill has neither limit: it stores each key of this worker's
    part of the tape once.
    """

    phase: Annotated[Phase, Meta(description="only the figures of `measure` are reported")]
    start_unix_ns: Annotated[
        int,
        Meta(
            description="planned start, ns since the epoch. 0 or past: start as soon as everything "
            "is ready. Garbage collection and allocation of memory for the results come before the "
            "window, not within it"
        ),
    ] = 0
    ops: Annotated[
        int | None, Meta(description="number of operations after which the run ends")
    ] = None
    duration_ms: Annotated[int | None, Meta(description="time after which the run ends")] = None


class Stop(Message, frozen=True, kw_only=True, tag="stop"):
    """End the current run; its `done` follows as usual."""


class Bye(Message, frozen=True, kw_only=True, tag="bye"):
    """Close the connections and exit with status 0, without an answer.

    The end of stdin means the same.
    """


# ----------------------------------------------------------------------------------- answers


class Ready(Message, frozen=True, kw_only=True, tag="ready"):
    """The answer to `hello` (with all fields) and to `prepare` (without fields)."""

    protocol: Annotated[int, Meta(description="the protocol version of the worker")] = (
        PROTOCOL_VERSION
    )
    client: Annotated[str, Meta(description="the client's id, such as `python/pymemcache`")] = ""
    library: Annotated[str, Meta(description="the library under test")] = ""
    library_version: Annotated[
        str, Meta(description="the version that the library itself reports")
    ] = ""
    language: Annotated[str, Meta(description="such as `python`")] = ""
    runtime: Annotated[str, Meta(description="such as `CPython 3.11.7`")] = ""
    capabilities: Annotated[
        list[str],
        Meta(
            description="wire protocols, the library's default first (`text`, `binary`, `meta`, or "
            "only `none`); kinds of operations (`get`, `set_noreply` …); and any of `threads`, "
            "`pipeline`, `open_loop`, `unix`, `shared` (callers may share a connection), `cluster` "
            "(several servers), `merges` (the client may answer reads without a command for each), "
            "`think` (closed loops with think time), `timeline` (`done` has a `timeline`)"
        ),
    ] = []


class Progress(Message, frozen=True, kw_only=True, tag="progress"):
    """Sent about once a second during a run."""

    ops: Annotated[Count, Meta(description="operations completed since the start of the run")]
    errors: Annotated[Count, Meta(description="operations failed since the start of the run")] = 0


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one kind of operation. attempts = ok + all errors + wrong_values."""

    attempts: Annotated[Count, Meta(description="operations started")]
    ok: Annotated[
        Count, Meta(description="operations completed with a correct and definite answer")
    ]
    hits: Annotated[Count, Meta(description="keys found (reads, touch, delete)")] = 0
    misses: Annotated[
        Count, Meta(description="keys not found (a miss is an answer, not an error)")
    ] = 0
    not_stored: Annotated[
        Count,
        Meta(description="`add`, `replace`, `append`, `prepend` or `cas` that stored nothing"),
    ] = 0
    wrong_values: Annotated[
        Count, Meta(description="operations whose reply failed verification")
    ] = 0
    errors: Annotated[
        dict[str, Count],
        Meta(
            description="failed operations by kind: `timeout`, `connection`, `server`, `client`, "
            "`protocol`"
        ),
    ] = {}
    keys: Annotated[Count, Meta(description="keys in the `ok` operations")] = 0
    value_bytes: Annotated[
        Count, Meta(description="value bytes that the `ok` operations read or wrote")
    ] = 0
    key_bytes: Annotated[Count, Meta(description="bytes of the keys in the `ok` operations")] = 0
    busy_ns: Annotated[
        Count,
        Meta(description="total time of the `ok` operations inside the library's calls"),
    ] = 0
    response: Annotated[
        Histogram | None,
        Meta(
            description="completion − intended start; a timeout counts with the time that it lasted"
        ),
    ] = None
    service: Annotated[Histogram | None, Meta(description="completion − actual send")] = None


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of the window: slices of equal length from its start, all kinds together.

    A slice without an operation is 0 in both lists.
    """

    slice_ns: Annotated[int, Meta(ge=1, description="length of each slice")]
    ok: Annotated[list[Count], Meta(description="`ok` operations that ended in each slice")]
    response_ns: Annotated[
        list[Count], Meta(description="the sum of the response times of these operations")
    ]


class Sections(msgspec.Struct, frozen=True, kw_only=True):
    """The window in a few parts of equal length, each with its own histogram, all kinds together.

    An operation belongs to the part in which it ended. If it ended after the window, it belongs to
    the last part.
    """

    length_ns: Annotated[int, Meta(ge=1, description="length of each part")]
    ok: Annotated[list[Count], Meta(description="`ok` operations that ended in each part")]
    response: Annotated[
        list[Histogram | None],
        Meta(
            description="response times of the operations that ended in each part; "
            "timeouts as in `operations`"
        ),
    ]


class Done(Message, frozen=True, kw_only=True, tag="done"):
    """The end of a run."""

    phase: Annotated[Phase, Meta(description="the phase of the request")]
    elapsed_ns: Annotated[
        Count,
        Meta(
            description="from the window's start to the last reply; after noreply operations, to "
            "the reply of the barrier on the last connection"
        ),
    ]
    send_elapsed_ns: Annotated[
        Count, Meta(description="from the window's start to the return of the last send or call")
    ]
    operations: Annotated[dict[str, Operation], Meta(description="results by kind of operation")]
    send_lag: Annotated[
        Histogram | None, Meta(description="open loop: actual send − intended start")
    ] = None
    generator_lag: Annotated[
        Histogram | None,
        Meta(
            description="open loop: the client's own part of the send lag, without the wait for a "
            "free connection: the time when it was ready to send the operation − intended start"
        ),
    ] = None
    max_in_flight: Annotated[
        Count, Meta(description="maximum number of outstanding operations")
    ] = 0
    queued: Annotated[
        Count,
        Meta(description="open loop: operations that were due and waited for a free connection"),
    ] = 0
    unsent: Annotated[
        Count,
        Meta(description="open loop: operations that were due in the window and were never sent"),
    ] = 0
    reconnects: Annotated[
        Count, Meta(description="number of times that a connection was opened again")
    ] = 0
    cpu_user_ns: Annotated[
        Count, Meta(description="user CPU time of this process during the run")
    ] = 0
    cpu_system_ns: Annotated[
        Count, Meta(description="system CPU time of this process during the run")
    ] = 0
    barriers: Annotated[
        Count,
        Meta(
            description="number of commands with a reply that followed noreply operations "
            "(`version`, never a get)"
        ),
    ] = 0
    overflow: Annotated[
        Count, Meta(description="number of times above 100 s, which the histogram holds as 100 s")
    ] = 0
    timeline: Annotated[
        Timeline | None, Meta(description="data for the test whether the window was stationary")
    ] = None
    sections: Annotated[
        Sections | None, Meta(description="data for the intervals within one trial")
    ] = None


class Unsupported(Message, frozen=True, kw_only=True, tag="unsupported"):
    """An answer to any request: this worker cannot do this, and a retry would not help."""

    reason: Annotated[str, Meta(description="one sentence, for the report")]
    remedy: Annotated[
        str, Meta(description="what the user can do to make it work; may be empty")
    ] = ""


class Failure(Message, frozen=True, kw_only=True, tag="error"):
    """An answer to any request: the request failed."""

    kind: Annotated[
        str,
        Meta(
            description="`connect`, `timeout`, `connection`, `server`, `client`, `protocol`, "
            "`tape`, `internal`"
        ),
    ]
    text: Annotated[str, Meta(description="one sentence, for the report")]
    definite: Annotated[
        bool,
        Meta(description="true if the request certainly had no effect (a timeout is not definite)"),
    ] = True


Request = Hello | Prepare | Run | Stop | Bye
Answer = Ready | Progress | Done | Unsupported | Failure

REQUESTS: tuple[type[Message], ...] = (Hello, Prepare, Run, Stop, Bye)
ANSWERS: tuple[type[Message], ...] = (Ready, Progress, Done, Unsupported, Failure)

_encoder = msgspec.json.Encoder()
_request_decoder: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_answer_decoder: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)


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


def decode_answer(line: bytes) -> Answer:
    """Read one answer. Raises ProtocolError."""
    try:
        return _answer_decoder.decode(line)
    except DECODE_ERRORS as error:
        raise ProtocolError(f"not an answer: {error}: {_excerpt(line)}") from error


def _excerpt(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 120 else text[:120] + "…")
