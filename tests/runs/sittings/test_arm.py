"""Arms start side by side, are warm at some time, and nothing of them is left after a sitting."""

import threading

import pytest

from cachemark.model.errors import TrialError
from cachemark.runs.sittings.arm import do_side_by_side, start_side_by_side, starting_threads
from cachemark.runs.sittings.warm_up import WarmUpSlice, is_warm, needed_ms

CASES = [
    ("too few slices", [100] * 15, False),
    ("constant", [100] * 16, True),
    ("a JIT compiler still works", [100] * 8 + [150] * 8, False),
    ("a leap that is over", [100] * 8 + [150] * 16, True),
    ("one slow slice is no warm-up", [100] * 12 + [3] + [100] * 3, True),
    ("slower is warm", [100] * 8 + [90] * 8, True),
    ("nothing done", [0] * 16, True),
]
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


def test_arms_end_together_and_stay_ended_after_an_interrupt() -> None:
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


def played(ops: list[int], wall_ms: float = 20) -> list[WarmUpSlice]:
    return [WarmUpSlice(count, round(wall_ms * 1e6)) for count in ops]


@pytest.mark.parametrize(("ops", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_is_warm(ops: list[int], expected: bool) -> None:
    assert is_warm(played(ops)) is expected


LONG_ENOUGH = [
    ("one caller waits 100 ms", played([1, 1], 100), 1, 400),
    ("so do 64", played([64, 64], 100), 64, 400),
    ("beside a few fast ones", played([1, 5, 1, 2], 100), 1, 400),
    ("a slice without any has no length", [*played([1, 1], 100), *played([0], 52)], 1, 400),
    ("few operations fit", played([0, 2]), 1, 40),
    ("the best slices decide", [*played([0, 1], 300), *played([3], 25)], 1, 0),
    ("a machine that stops is no slow operation", played([200, 200], 100), 64, 0),
    ("no warm-up", [], 1, 0),
]


@pytest.mark.parametrize(
    ("slices", "callers", "expected"), [c[1:] for c in LONG_ENOUGH], ids=[c[0] for c in LONG_ENOUGH]
)
def test_slices_are_as_long_as_operations_need(
    slices: list[WarmUpSlice], callers: int, expected: float
) -> None:
    assert needed_ms(slices, 20_000, callers) == expected


def test_operations_longer_than_any_slice_have_a_remedy() -> None:
    with pytest.raises(TrialError, match="takes 400 ms") as refused:
        needed_ms(played([1], 400), 20_000, 1)
    assert refused.value.remedy == "use --set design=trials"
