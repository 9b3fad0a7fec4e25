"""The options of `run` and the capabilities of workers, in the words of PROTOCOL.md."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from cachemark.model.setting_types import described as _is

CAPABILITIES = (
    "wire protocols, the library's default first (`text`, `binary`, `meta`, or only `none`); "
    "kinds of operations (`get`, `set_noreply` …); and any of `threads`, `pipeline`, `in_order` "
    "(a caller's operations on a key reach the server in their order, also those that are "
    "outstanding together or have no reply), `refill_all` (it can wait for all outstanding "
    "operations before it begins the next ones), `open_loop`, `unix`, `shared` (callers may share "
    "a connection), `cluster` (several servers), `tls` (it encrypts connections if the option "
    "`tls` is a PEM file with the certificates to trust; `tls_name` is the name that the server's "
    "certificate must have if it is not the address, `tls_client_cert` and `tls_client_key` are "
    "PEM files of the client's own), `merges` (the client may answer reads without a command for "
    "each), `think` (closed loops with think time), `timeline` (`done` has a `timeline`), "
    "`slices` (`begin_slices`, `slice`, `end_slices`), `groups` (`done` has `groups`), `calls` "
    "(it writes a call log when `run` asks for it); and of `cancel`, `exhaust`, `fork`, "
    "`interrupt`, `kill` the ways in which its callers can give up a call"
)
# The ways in which callers give up a call that is going on. Each is a capability of workers.
Way = Literal["cancel", "exhaust", "fork", "interrupt", "kill"]


class GiveUp(msgspec.Struct, frozen=True, kw_only=True):
    """Callers give up some of their calls in a part of the window.

    `cancel`: the task, the future or the context of the call is cancelled; the call is a `timeout`.
    `kill`: the thread of the call is killed; the call is a `timeout`. `interrupt`: the handler of a
    signal ends the call with an exception; the call is a `timeout`. Where signals reach one thread
    only, the callers in other threads make their calls as usual. `fork`: before a `get`, a child
    process begins the same call on the same connection and is killed; then the caller makes its
    call. `exhaust`: before a `get`, once in the life of a caller, its process reaches its memory
    limit within the reply to a longer read on the same connection; then the caller makes its call.
    A call that cannot be given up counts, and is made as usual. Tasks that share one list of
    operations are one caller.
    """

    way: Annotated[Way, _is("how they give up")]
    every: Annotated[
        int, _is("of each caller every how many-th of the calls that begin in the part", ge=1)
    ]
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
