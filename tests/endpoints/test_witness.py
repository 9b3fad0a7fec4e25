"""The certain limits of a window, however late the messages of its worker are read."""

import os
import time
from collections.abc import Callable

import pytest

from cachemark.endpoints import witness
from cachemark.endpoints.witness import Witness

S = 1_000_000_000


class Clock:
    """The witness's clock and the worker's CPU time, which is half of it."""

    now_ns = 0

    def read_ns(self) -> int:
        return self.now_ns // 2


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic_ns", lambda: clock.now_ns)
    monkeypatch.setattr(witness, "CpuMeter", lambda _: clock)
    return clock


Step = Callable[[float, int | None], None]


def play(clock: Clock, made: Witness) -> Step:
    """At a second: a look at an empty pipe, or what a message that was waiting tells."""

    def step(at_s: float, ops: int | None) -> None:
        clock.now_ns = round(at_s * S)
        reading = made.read()
        if ops is None:
            made.silent(reading)
        else:
            made.progress(ops)

    return step


def test_a_progress_counts_from_when_the_pipe_was_last_empty(clock: Clock) -> None:
    seen = Witness(os.getpid(), 0, None)
    step = play(clock, seen)
    for at_s, ops in [(0.8, None), (1, 100), (2.5, None), (3, 200), (3.9, None), (4, 300)]:
        step(at_s, ops)
    assert (seen.lasted_ns, seen.cpu_ns) == (1.5 * S, 0.75 * S)


def test_progress_of_a_worker_that_sums_up_does_not_count(clock: Clock) -> None:
    seen = Witness(os.getpid(), 0, None)
    step = play(clock, seen)
    for at_s, ops in [(1, 100), (1.9, None), (2, 200), (2.9, None), (3, 300)]:
        step(at_s, ops)
    certain = seen.lasted_ns, seen.cpu_ns
    for at_s in range(4, 60):
        step(at_s - 0.1, None)
        step(at_s, 300)
    assert (seen.lasted_ns, seen.cpu_ns) == certain == (0.9 * S, 0.45 * S)


def test_a_message_that_lay_there_for_long_proves_nothing(clock: Clock) -> None:
    seen = Witness(os.getpid(), 0, None)
    step = play(clock, seen)
    for at_s, ops in [(0.5, None), (30, 100), (30, 200), (30, 300)]:
        step(at_s, ops)
    assert (seen.lasted_ns, seen.cpu_ns or 0) == (0, 0)


def test_a_window_by_time_lasts_at_least_until_its_time(clock: Clock) -> None:
    seen = Witness(os.getpid(), 0, 3 * S)
    step = play(clock, seen)
    for at_s, ops in [(1, 100), (2.8, None), (3.2, None), (9, None)]:
        step(at_s, ops)
    assert (seen.lasted_ns, seen.cpu_ns) == (1.8 * S, 0.9 * S)


def test_nothing_is_certain_before_a_worker_began(clock: Clock) -> None:
    seen = Witness(os.getpid(), 0, 3 * S)
    step = play(clock, seen)
    for at_s, ops in [(1, 0), (2, None)]:
        step(at_s, ops)
    assert (seen.lasted_ns, seen.cpu_ns) == (0, None)
