"""Takes the place of `time` in a worker: time passes when the worker reads it, and when it sleeps.

So what a worker plays in a slice depends on nothing but its code. A test keeps a worker from its
CPU: the file `gap_ns` beside this one has two instants, and no time between them is ever read.
"""

import threading
from pathlib import Path

_GAP_NS = Path(__file__).with_name("gap_ns")
_READING_NS = 100_000
_turn = threading.Lock()
_now_ns = 0


def _pass(duration_ns):
    """Let time pass, and return what time it is then."""
    global _now_ns  # noqa: PLW0603 (there is one time)
    with _turn:
        _now_ns += duration_ns
        if _GAP_NS.exists():
            begin_ns, end_ns = map(int, _GAP_NS.read_text("ascii").split())
            if begin_ns <= _now_ns < end_ns:
                _now_ns = end_ns
        return _now_ns


def perf_counter_ns():
    return _pass(_READING_NS)


time_ns = perf_counter_ns


def sleep(seconds):
    _pass(round(seconds * 1e9))
