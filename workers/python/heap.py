"""Collections of the interpreter in a run, by its own counters.

CPython counts neither allocations nor the time of collections.
"""

from __future__ import annotations

import gc


def collections():
    """The collections since the start of the process; None if the interpreter does not count them.

    PyPy's `get_stats` is about memory.
    """
    stats = gc.get_stats()
    return sum(each["collections"] for each in stats) if isinstance(stats, list) else None


def since(before):
    """The message about a run; `before` is the result of `collections` at its start."""
    return None if before is None else {"collections": collections() - before}
