"""null: no library. It measures the loop's own cost.

It stores nothing: the keys of the prefill are always there, and no others.
"""

from __future__ import annotations

from client import BaseSession
from verify import CLIENT, accepted, found, found_many, known, sent, swapped

LIBRARY, VERSION = "none", "1"
API = "sync"
KEYS = bytes
WIRES = ("none",)
FEATURES = ("threads", "open_loop")
OPTIONS = {}
UNREACHABLE = ()


def answer(value):
    """All that is called."""
    return value


def _read(_session, op):
    return answer, (op.value if op.prefilled() else None,), found


def _read_many(_session, op):
    there = (key for position, key in enumerate(op.keys) if op.prefilled(position))
    return answer, ({key: op.pairs[key] for key in there},), found_many


def _changed(_session, op):
    return answer, (op.prefilled(),), known


CALLS = {
    **dict.fromkeys(("get", "gets", "gat"), _read),
    "mget": _read_many,
    **dict.fromkeys(("set", "mset"), lambda s, op: (answer, (True,), sent)),
    "add": lambda s, op: (answer, (not op.prefilled(),), accepted),
    "replace": lambda s, op: (answer, (op.prefilled(),), accepted),
    **dict.fromkeys(("delete", "touch"), _changed),
    **dict.fromkeys(("incr", "decr"), _changed),
    "cas": lambda s, op: (answer, ((op.value if op.prefilled() else None, True),), swapped),
}


class Session(BaseSession):
    """Answers each read with the right value."""

    def __init__(self, setup):
        pass

    def failure(self, error, op):
        return CLIENT
