"""Callers that give up calls, for runs that ask for it: PROTOCOL.md, `GiveUp`.

A call that is given up is another function with the same arguments: the loops do not know of it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from functools import partial
from itertools import count


def giving_up(calls, asked, window):
    """The calls of an open loop, some of which are given up."""
    way, after_s = _WAYS[asked["way"]], asked["after_ms"] / 1e3
    begin_ns, end_ns = (
        window.start_ns + asked[name] * 1_000_000 for name in ("begin_ms", "end_ms")
    )
    turn = count(1)
    for due, function, arguments, verify, op in calls:
        given_up = function
        if begin_ns <= due < end_ns and next(turn) % asked["every"] == 0:
            given_up = way(after_s, function, op)
        yield due, given_up, arguments, verify, op


def ways(client):
    """What the callers of a client file can do, as capabilities."""
    if client.WIRES == ("none",):
        return ()
    return ("cancel",) if client.API == "async" else ("fork",)


def _cancelling(after_s, function, _op):
    async def call(*arguments):
        try:
            return await asyncio.wait_for(function(*arguments), after_s)
        except asyncio.TimeoutError as error:  # before Python 3.11 this is no TimeoutError
            raise TimeoutError from error

    return call


def _forking(after_s, function, op):
    """A child must not write: what it writes would be there before the caller's call begins."""
    return partial(_forked, after_s, function) if op.kind == "get" else function


def _forked(after_s, function, *arguments):
    child = os.fork()
    if child == 0:
        try:
            function(*arguments)
        finally:
            os._exit(0)
    time.sleep(after_s)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return function(*arguments)


_WAYS = {"cancel": _cancelling, "fork": _forking}
