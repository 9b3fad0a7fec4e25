"""Arms start side by side, and nothing is left that starts when a sitting breaks off."""

from __future__ import annotations

import threading

import pytest

from cachemark.runs.sittings.arm import do_side_by_side, start_side_by_side, starting_threads

PATIENCE_S = 60.0


class FakeArm:
    """Its start ends when all of `meeting` are there, or when it is killed."""

    def __init__(self, meeting: threading.Barrier) -> None:
        self._meeting = meeting
        self.begun = self.ended = False

    def start(self) -> None:
        self.begun = True
        try:
            self._meeting.wait(PATIENCE_S)
        except threading.BrokenBarrierError:
            return
        finally:
            self.ended = True

    def kill_workers(self) -> None:
        if self.begun:
            self._meeting.abort()


def test_arms_start_side_by_side() -> None:
    meeting = threading.Barrier(2)
    arms = [FakeArm(meeting), FakeArm(meeting)]
    counts: list[int] = []
    with starting_threads() as threads:
        start_side_by_side(threads, arms, counts.append)
    assert counts == [1, 2]
    assert not meeting.broken, "one arm waited until the other one had started"


def test_what_breaks_a_sitting_off_ends_every_start() -> None:
    alone, never = threading.Barrier(1), threading.Barrier(2)
    waiting = FakeArm(never)
    arms = [FakeArm(alone), waiting]

    def no_memory(_: int) -> None:
        raise MemoryError

    with starting_threads() as threads:
        with pytest.raises(MemoryError):
            start_side_by_side(threads, arms, no_memory)
        assert waiting.ended or not waiting.begun


def test_arms_end_side_by_side_and_none_goes_on_after_an_interrupt() -> None:
    meeting, never = threading.Barrier(2), threading.Barrier(2)
    both = [FakeArm(meeting), FakeArm(meeting)]
    with starting_threads() as threads:
        do_side_by_side(threads, both, [arm.start for arm in both], lambda _: None)
    assert not meeting.broken
    waiting = FakeArm(never)
    quick = FakeArm(threading.Barrier(1))

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with starting_threads() as threads:
        with pytest.raises(KeyboardInterrupt):
            do_side_by_side(threads, [quick, waiting], [quick.start, waiting.start], interrupted)
        assert waiting.ended or not waiting.begun
