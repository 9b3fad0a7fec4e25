"""Takes the place of `time` in a worker: time passes when the worker reads it, and when it sleeps.

A test makes a sleep last longer, as for a worker that then gets no CPU: it writes how much longer,
in ns, into the file `gap_ns` beside this one.
"""

from pathlib import Path

_GAP_NS = Path(__file__).with_name("gap_ns")
_READING_NS = 20_000
_now_ns = 0


def perf_counter_ns():
    global _now_ns  # noqa: PLW0603 (there is one time)
    _now_ns += _READING_NS
    return _now_ns


time_ns = perf_counter_ns


def sleep(seconds):
    global _now_ns  # noqa: PLW0603
    _now_ns += round(seconds * 1e9)
    if seconds and _GAP_NS.exists():
        _now_ns += int(_GAP_NS.read_text())
