"""A host plays the slices that it was told, at their times, or says why it did not."""

from __future__ import annotations

import time
from collections.abc import Generator
from itertools import pairwise
from typing import cast

import pytest

from cachemark.agents import slices as slices_module
from cachemark.agents.fleet_arm import FleetArm
from cachemark.agents.fleet_sitting import Planned, overhang_ns, scheduled
from cachemark.agents.slice_messages import HostSlices, PlannedSlice
from cachemark.agents.slices import SlicePlayer
from cachemark.endpoints.fleet import Fleet
from cachemark.model.errors import TrialError
from cachemark.model.protocol import Slice, SliceDone

MS = 1_000_000
SECOND = 1000 * MS


class Workers:
    """Stands for the workers of an arm: notes when it was asked to start, and answers at once."""

    workers = ()
    slice_late_ns = 7

    def __init__(self, *, breaks: bool = False) -> None:
        self.starts: list[int] = []
        self._breaks = breaks

    def begin_slices(self, _: float) -> None:
        """They are ready."""

    def slice(self, request: Slice) -> SliceDone:
        """A slice of no length has no operations."""
        if request.length_us:
            self.starts.append(request.start_unix_ns)
            if self._breaks:
                raise TrialError("it was killed by signal 9", "do not kill it")
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


def test_slices_are_asked_for_with_their_planned_starts() -> None:
    arms, now = (Workers(), Workers()), time.time_ns()
    # So far ahead that even a busy machine is in time.
    wanted = [planned(0, now + SECOND), planned(1, now + 2 * SECOND)]
    answer = player_of(*arms).play(wanted)
    assert played(answer) == [True, True]
    assert [arm.starts for arm in arms] == [[now + SECOND], [now + 2 * SECOND]]
    assert [one.late_ns for one in answer.played] == [7, 7]
    assert all(one.worker_cpu_ns == -1 for one in answer.played), "they have no processes"


def test_a_slice_whose_start_is_over_is_not_begun() -> None:
    arm, now = Workers(), time.time_ns()
    answer = player_of(arm).play([planned(0, now - 2 * MS), planned(0, now + SECOND)])
    assert played(answer) == [False, True]
    assert answer.played[0].late_ns >= 2 * MS
    assert arm.starts == [now + SECOND], "the next one is not delayed"


def test_an_arm_that_breaks_leaves_its_other_slices_out() -> None:
    broken, whole, now = Workers(breaks=True), Workers(), time.time_ns()
    wanted = [planned(arm, now + SECOND + arm * SECOND) for arm in (0, 1)]
    answer = player_of(broken, whole).play([*wanted, planned(0, now + 3 * SECOND)])
    assert played(answer) == [False, True, False]
    (failure,) = answer.failures
    assert (failure.arm, failure.text) == (0, "it was killed by signal 9")
    assert failure.remedy == "do not kill it"
    assert len(broken.starts) == 1


def test_a_clock_that_is_set_makes_slices_void(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forwards or backwards: nobody waits for the time that the clock shows then."""
    arm, now = Workers(), time.time_ns()
    ahead = iter([0, 0, 3 * MS, -3600 * SECOND, 0])
    real_ns = time.time_ns() - time.monotonic_ns()
    monkeypatch.setattr(slices_module, "_wall_ahead_ns", lambda: real_ns + next(ahead))
    starts = [now + SECOND + number * 100 * MS for number in range(4)]
    answer = player_of(arm).play([planned(0, start) for start in starts])
    stepped = [one.stepped_ns for one in answer.played]
    assert stepped == [0, 3 * MS, -3600 * SECOND, 0]
    assert played(answer)[1:3] == [False, False]


def test_a_sitting_that_is_broken_off_plays_no_more() -> None:
    arm = Workers()

    def checks() -> Generator[None]:
        yield
        raise TrialError("the trial was broken off")

    going = checks()
    player = SlicePlayer({0: cast("Fleet", arm)}, {}, lambda: next(going))
    player.begin(0, 1.0)
    now = time.time_ns()
    with pytest.raises(TrialError, match="broken off"):
        player.play([planned(0, now + SECOND), planned(0, now + 3600 * SECOND)])


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
