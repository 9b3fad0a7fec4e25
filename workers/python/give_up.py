"""Callers that give up calls, for runs that ask for it: PROTOCOL.md, `GiveUp`.

A call that is given up is another function with the same arguments: the loops do not know of it.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
import time
from itertools import count

from client import GivenUpError
from window import clock


class _Turns:
    """Which calls of a caller it gives up: each `every`-th of those that begin in the part."""

    def __init__(self, asked, window):
        self.after_s = asked["after_ms"] / 1e3
        self._begin_ns, self._end_ns = (
            window.start_ns + asked[name] * 1_000_000 for name in ("begin_ms", "end_ms")
        )
        self._every, self._count = asked["every"], count(1)

    def has_come(self):
        """Whether the call that begins now is one of them. Ask this once for each call."""
        in_part = self._begin_ns <= clock() < self._end_ns
        return in_part and next(self._count) % self._every == 0


def giving_up(calls, asked, window):
    """The calls of an open loop, some of which are given up."""
    way, turns = _WAYS[asked["way"]], _Turns(asked, window)
    for due, function, arguments, verify, op in calls:
        yield due, way(turns, function, op), arguments, verify, op


def ways(client):
    """The ways of a client file's callers to give up, as capabilities."""
    if client.WIRES == ("none",):
        return ()
    return ("cancel",) if client.API == "async" else ("fork", "interrupt")


def _cancelling(turns, function, _op):
    asyncio = importlib.import_module("asyncio")  # a blocking client does not need it

    async def call(*arguments):
        if not turns.has_come():
            return await function(*arguments)
        try:
            return await asyncio.wait_for(function(*arguments), turns.after_s)
        except asyncio.TimeoutError as error:  # before Python 3.11 this is no TimeoutError
            raise GivenUpError from error

    return call


def _forking(turns, function, op):
    def call(*arguments):
        # A child must not write: its value would be stored before the caller's call begins.
        if turns.has_come() and op.kind == "get":
            return _forked(turns.after_s, function, *arguments)
        return function(*arguments)

    return call


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


def _interrupting(turns, function, _op):
    """As Ctrl-C does it. Python runs the handlers of signals in the main thread only."""

    def call(*arguments):
        if not (turns.has_come() and threading.current_thread() is threading.main_thread()):
            return function(*arguments)
        try:
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, turns.after_s)
            try:
                return function(*arguments)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt as error:
            raise GivenUpError from error

    return call


_WAYS = {"cancel": _cancelling, "fork": _forking, "interrupt": _interrupting}
