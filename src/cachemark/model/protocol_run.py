"""The options of `run`, in the words of PROTOCOL.md."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

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

    way: Annotated[Way, Meta(description="how they give up")]
    every: Annotated[
        int,
        Meta(
            ge=1, description="of each caller every how many-th of the calls that begin in the part"
        ),
    ]
    after_ms: Annotated[
        int, Meta(ge=1, description="how long after the begin of the call; not with `exhaust`")
    ]
    begin_ms: Annotated[int, Meta(ge=0, description="begin of the part, from the window's start")]
    end_ms: Annotated[int, Meta(ge=0, description="end of the part, from the window's start")]


GivesUp = Annotated[
    GiveUp | None,
    Meta(
        description="open loop: callers give up calls; only a worker with the capability is asked"
    ),
]
CallLogPath = Annotated[
    str,
    Meta(
        description="open loop: path of a call log (docs/call-log.md) that the worker writes when "
        "the run is over, also when a call does not return; empty: no call log"
    ),
]
StartUnixNs = Annotated[
    int,
    Meta(
        description="planned start, ns since the epoch. 0 or past: start as soon as everything "
        "is ready. Garbage collection and allocation of memory for the results come before the "
        "window, not within it"
    ),
]
