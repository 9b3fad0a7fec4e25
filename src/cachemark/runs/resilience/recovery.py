"""When a cell may end: its client has recovered, as far as can be seen while it plays. Pure.

The call log says later what each call came to; until then there are the worker's progress and the
counters of the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

_MS = 1_000_000
# All keys are read once in 2.5 s: a value that was stored elsewhere shows in this time.
STEADY_MS = 3000
_FEWEST_OPS = 100


class Look(NamedTuple):
    """A worker's progress, and how many calls the server with the fault has executed by then.

    `ops` and `errors` count since the start of the run.
    """

    at_ns: int
    ops: int
    errors: int
    answered: int


def is_healthy(before: Look, now: Look, share: float) -> bool:
    """Whether all calls between two looks were answered by the server.

    `share` is the part of the calls that it has to see: a failure that looks like a miss is a call
    that reached no server.
    """
    ops = now.ops - before.ops
    return (
        now.errors == before.errors
        and ops >= _FEWEST_OPS
        and now.answered - before.answered >= share * ops
    )


def healthy_since_ns(looks: Sequence[Look], share: float) -> int | None:
    """Since when every look has been a healthy one; None if the last was not."""
    since: int | None = None
    for before, now in pairwise(looks):
        if not is_healthy(before, now, share):
            since = None
        elif since is None:
            since = before.at_ns
    return since


def may_end(looks: Sequence[Look], fault_end_ns: int, after_ms: int, share: float) -> bool:
    """Whether a client has recovered and has since then played long enough.

    `looks` are those after the fault, `after_ms` is how long each client plays after it.
    """
    since_ns = healthy_since_ns(looks, share)
    if since_ns is None:
        return False
    now_ns = looks[-1].at_ns
    return now_ns - since_ns >= STEADY_MS * _MS and now_ns - fault_end_ns >= after_ms * _MS
