"""A host plays the requested slices at their times, or says why it did not."""

from collections.abc import Callable
from itertools import pairwise
from typing import cast

import pytest

from cachemark.endpoints.fleet import Fleet
from cachemark.model.errors import TrialError
from cachemark.model.protocol import Slice, SliceDone
from cachemark.runs.agents import slices as slices_module
from cachemark.runs.agents.fleet_arm import FleetArm
from cachemark.runs.agents.fleet_sitting import Planned, overhang_ns, scheduled
from cachemark.runs.agents.messages import HostSlices, PlannedSlice
from cachemark.runs.agents.slices import SlicePlayer

MS = 1_000_000
SECOND = 1000 * MS


class Clocks:
    """Both clocks of a host, in virtual time: it passes when somebody sleeps."""

    def __init__(self) -> None:
        self._passed_ns = 0
        self.wall_ahead_ns = 500 * SECOND
        self.late_ns = 0

    def monotonic_ns(self) -> int:
        """The clock that no user can set."""
        return self._passed_ns

    def time_ns(self) -> int:
        """The clock that people set."""
        return self._passed_ns + self.wall_ahead_ns

    def sleep(self, seconds: float) -> None:
        """Sleep, and wake up late if somebody wants it."""
        self._passed_ns += round(seconds * SECOND) + self.late_ns
        self.late_ns = 0


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    """The clocks of the player."""
    made = Clocks()
    monkeypatch.setattr(slices_module, "time", made)
    return made


class Workers:
    """Stands for the workers of an arm: notes when it was asked to start, and answers at once."""

    workers = ()
    slice_late_ns = 7
    slice_paused_ns = 0

    def __init__(self, act: Callable[[], None] = lambda: None) -> None:
        self.starts: list[int] = []
        self._act = act

    def begin_slices(self, _: float) -> None:
        """They are ready."""

    def slice(self, request: Slice) -> SliceDone:
        """Do what the test wants."""
        if request.length_us:
            self.starts.append(request.start_unix_ns)
            self._act()
        return SliceDone(ops=request.length_us, errors=0, lead_in_ops=0, elapsed_ns=1)


def player_of(*arms: Workers) -> SlicePlayer:
    """A player of arms that are ready."""
    fleets = {number: cast("Fleet", arm) for number, arm in enumerate(arms)}
    player = SlicePlayer(fleets, {}, lambda: None)
    for number in fleets:
        player.begin(number, 1.0)
    return player


def planned(arm: int, start_unix_ns: int) -> PlannedSlice:
    """A slice that counts."""
    return PlannedSlice(arm=arm, start_unix_ns=start_unix_ns, length_us=5, lead_in_us=1)


def played(answer: HostSlices) -> list[bool]:
    """Which slices were played."""
    return [one.done is not None for one in answer.played]


def test_slices_are_asked_for_ahead_of_their_planned_starts(clocks: Clocks) -> None:
    asked: list[int] = []
    arms = [Workers(lambda: asked.append(clocks.time_ns())) for _ in range(2)]
    first = clocks.time_ns() + SECOND
    answer = player_of(*arms).play([planned(0, first), planned(1, first + 30 * MS)])
    assert played(answer) == [True, True]
    assert [arm.starts for arm in arms] == [[first], [first + 30 * MS]]
    assert asked == [first - 2 * MS, first + 28 * MS]
    assert [one.late_ns for one in answer.played] == [7, 7]
    assert all(one.cpu.worker_ns == -1 for one in answer.played), "they have no processes"


def test_a_late_host_does_not_begin_the_slice(clocks: Clocks) -> None:
    """The one before took too long; the next one is not delayed by it."""
    arm, first = Workers(lambda: clocks.sleep(0.04)), clocks.time_ns() + SECOND
    starts = [first, first + 30 * MS, first + 60 * MS]
    answer = player_of(arm).play([planned(0, start) for start in starts])
    assert played(answer) == [True, False, True]
    assert answer.played[1].late_ns == 8 * MS
    assert arm.starts == [first, first + 60 * MS]


@pytest.mark.parametrize(("late_ns", "begun"), [(3 * MS, True), (3 * MS + 1, False)])
def test_a_host_that_wakes_up_late(clocks: Clocks, late_ns: int, begun: bool) -> None:
    """It wakes up 2 ms before the start; up to 1 ms after it the slice may still be good."""
    arm, clocks.late_ns = Workers(), late_ns
    assert played(player_of(arm).play([planned(0, clocks.time_ns() + SECOND)])) == [begun]


def test_an_arm_that_breaks_leaves_its_other_slices_out(clocks: Clocks) -> None:
    def die() -> None:
        raise TrialError("it was killed by signal 9", "do not kill it")

    broken, whole, first = Workers(die), Workers(), clocks.time_ns() + SECOND
    wanted = [planned(arm, first + number * 30 * MS) for number, arm in enumerate((0, 1, 0))]
    answer = player_of(broken, whole).play(wanted)
    assert played(answer) == [False, True, False]
    (failure,) = answer.failures
    assert (failure.arm, failure.text) == (0, "it was killed by signal 9")
    assert failure.remedy == "do not kill it"
    assert len(broken.starts) == 1


@pytest.mark.parametrize("jump_ns", [3 * MS, -3 * MS, -3600 * SECOND, 3600 * SECOND])
def test_a_clock_that_is_set_makes_slices_void(clocks: Clocks, jump_ns: int) -> None:
    """No slice waits until the time that the clock shows then."""

    def jump() -> None:
        clocks.wall_ahead_ns += jump_ns

    arm, first = Workers(jump), clocks.time_ns() + SECOND
    began_ns = clocks.monotonic_ns()
    answer = player_of(arm).play([planned(0, first + number * 30 * MS) for number in range(3)])
    assert played(answer) == [True, False, False]
    assert [one.stepped_ns for one in answer.played] == [0, jump_ns, jump_ns]
    assert clocks.monotonic_ns() - began_ns == SECOND + 58 * MS


def test_a_sitting_that_is_broken_off_plays_no_more(clocks: Clocks) -> None:
    arm, going = Workers(), iter([True, False])

    def check() -> None:
        if not next(going):
            raise TrialError("the trial was broken off")

    player = SlicePlayer({0: cast("Fleet", arm)}, {}, check)
    player.begin(0, 1.0)
    first = clocks.time_ns() + SECOND
    with pytest.raises(TrialError, match="broken off"):
        player.play([planned(0, first), planned(0, first + 30 * MS)])
    assert arm.starts == [first]


class Arm:
    """Stands for an arm whose slices took so much longer than their length."""

    def __init__(self, *overhangs_ns: int) -> None:
        self.overhangs_ns = list(overhangs_ns)


def test_a_slice_begins_when_the_one_before_it_has_ended() -> None:
    arms = [Arm(*range(100)), Arm(), Arm(0), Arm(3600 * SECOND)]
    wanted = [Planned(cast("FleetArm", arm), None, 0) for arm in arms]
    starts = [one.start_ns for one in scheduled(wanted, 1000, 30)]
    gaps = [second - first for first, second in pairwise(starts)]
    assert starts[0] == 1000
    # Nine of ten of the last 64; a guess; the time to ask for the next one.
    assert gaps == [30_000 + 93 + 3 * MS, 30_000 + 20 * MS + 3 * MS, 30_000 + 3 * MS]
    assert overhang_ns([3600 * SECOND]) == SECOND
