"""A sitting that several hosts of clients play together: the coordinator sends the schedule ahead.

The hosts get slices for some seconds at a time, each with its start by the host's own clock. They
play them without a message from anywhere. Between two such requests all clocks are compared, so it
is known afterwards how far apart the hosts can have started each slice.
"""

import math
import random
import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from cachemark.model.errors import TrialError
from cachemark.model.outcome import Outcome
from cachemark.model.plan import warmup_ms
from cachemark.runs.agents import messages
from cachemark.runs.agents.clock import ClockReading, Offset, skew_ns, start_bounds
from cachemark.runs.agents.coordinator import ANSWER_S, Coordinator
from cachemark.runs.agents.fleet_arm import FleetArm, Together
from cachemark.runs.agents.remote import host_part, start_servers
from cachemark.runs.sittings.order import Turn
from cachemark.runs.sittings.sitting import SittingDisplay, SittingSetting, rows_of
from cachemark.runs.sittings.warm_up import is_warm, most_rounds

# By the first start the request must have reached all hosts: some time, and some for each host.
_START_AHEAD_NS = 200_000_000
_START_AHEAD_OF_HOST_NS = 10_000_000
# The longest play between two comparisons of clocks, which drift apart by some 50 µs a second.
_STRETCH_NS = 2_000_000_000
# After a slice: the request for the next one is there 2 ms before its start.
_SPARE_NS = 3_000_000
# A slice ends with its last operation. The next one waits for most of them, not for the slowest.
_OVERHANG_QUANTILE = 0.9
_LAST_OVERHANGS = 64
_UNKNOWN_OVERHANG_NS = 20_000_000
_LONGEST_OVERHANG_NS = 1_000_000_000


class Planned(NamedTuple):
    """A slice to play: its arm, the arm before it, and its start by the coordinator's clock.

    `turn` is None in a warm-up.
    """

    arm: FleetArm
    turn: Turn | None
    before: int
    start_ns: int = 0


def play_fleet_sitting(
    coordinator: Coordinator, setting: SittingSetting, display: SittingDisplay
) -> list[Outcome]:
    """Play a sitting. Failures of hosts, servers and workers are in the outcomes."""
    sitting = _FleetSitting(coordinator, setting, display)
    try:
        sitting.play()
    except TrialError as error:
        for arm in sitting.arms:
            arm.end(error)
    finally:
        coordinator.end_trial()
    return [arm.outcome for arm in sitting.arms]


class _FleetSitting:
    def __init__(
        self, coordinator: Coordinator, setting: SittingSetting, display: SittingDisplay
    ) -> None:
        self._coordinator, self._setting, self._display = coordinator, setting, display
        self._order = random.Random(setting.seed)
        self._counted = setting.counted(setting.rounds.slice_ms)
        self._sets: list[list[FleetArm]] = []
        self.arms: list[FleetArm] = []
        for members in setting.sets:
            made = [
                FleetArm(coordinator, own, number=number, server_number=len(self.arms) + number)
                for number, own in enumerate(members)
            ]
            self._sets.append(made)
            self.arms += made
        # All arms of a sitting have the same load, so the same hosts make it.
        load = self.arms[0].setting.cell_load
        self._names = [host.name for host in coordinator.hosts.makers_of(load)]
        self._clocks: dict[str, ClockReading] = {}
        self._first_start_ns = 0

    def play(self) -> None:
        """Start all arms, warm them up, play the squares. Raises TrialError if a host fails."""
        coordinator, count = self._coordinator, len(self.arms)
        first = self._clocks = coordinator.clocks()
        server = coordinator.hosts.server.name
        self._display.doing(f"{count} servers start on {server}")
        starts = start_servers(coordinator, [arm.setting.server.text for arm in self.arms])
        for number, (arm, start) in enumerate(zip(self.arms, starts, strict=True)):
            self._display.doing(f"{number} of {count} clients are filled (prefill)")
            arm.attempt(partial(arm.start_clients, start))
        for arm in self.arms:
            arm.attempt(arm.begin)
        self._warm_up()
        for arm in self.arms:
            arm.attempt(arm.begin)
            arm.attempt(arm.read_before)
        names = [host.name for host in coordinator.hosts.hosts]
        coordinator.ask_each(
            dict.fromkeys(names, messages.BeginWindow()), messages.ServerReading, ANSWER_S
        )
        began_unix_ns = time.time_ns()
        self._play_squares()
        readings = coordinator.ask_each(
            dict.fromkeys(names, messages.EndWindow()), messages.WindowReading, ANSWER_S
        )
        self._finish(first, readings, began_unix_ns)

    def _warm_up(self) -> None:
        """Play rounds without counting, until each arm is warm or has had its time."""
        longest_ms = max(warmup_ms(a.setting.workload, a.setting.timing) for a in self.arms)
        left, together = most_rounds(longest_ms, self._setting.rounds.slice_ms), 1
        while left > 0:
            self._display.doing("warms up")
            cold = [arm for arm in self.arms if arm.alive and not is_warm(arm.warm_up_slices)]
            if not cold:
                break
            rounds = min(left, together)
            planned: list[Planned] = []
            for _ in range(rounds):
                self._order.shuffle(cold)
                planned += [Planned(arm, None, arm.number) for arm in cold]
            self._play(planned)
            # The first round measures the length of each arm's slices.
            left -= rounds
            together = max(1, _STRETCH_NS // (len(cold) * self._counted.length_us * 1000))
        length_us, hosts = self._counted.length_us, len(self._names)
        for arm in self.arms:
            arm.attempt(partial(arm.check_length, length_us, hosts))
        self._counted = self._setting.grown(self.arms, hosts)

    def _play_squares(self) -> None:
        slice_ms = self._counted.length_us / 1e3
        rows = rows_of(self._order, self._sets, slice_ms)
        stretch: list[Planned] = []
        for played, (part, row) in enumerate(rows, 1):
            before = row[0].arm
            for turn in row:
                stretch.append(Planned(self._sets[part][turn.arm], turn, before))
                before = turn.arm
            if played == len(rows) or len(stretch) * slice_ms * 1e6 >= _STRETCH_NS:
                self._play(stretch)
                self._display.played(played / len(rows))
                stretch = []

    def _play(self, wanted: Sequence[Planned]) -> None:
        """Play slices on all hosts without a pause, and note their results. Raises TrialError."""
        alive = [one for one in wanted if one.arm.alive]
        if not alive:
            return
        ahead_ns = _START_AHEAD_NS + _START_AHEAD_OF_HOST_NS * len(self._names)
        planned = scheduled(alive, time.time_ns() + ahead_ns, self._counted.length_us)
        requests = {name: self._request(planned, name) for name in self._names}
        answers = self._coordinator.ask_each(requests, messages.HostSlices, None)
        before, self._clocks = self._clocks, self._coordinator.clocks()
        for number, one in enumerate(planned):
            self._note(one, self._together(before, answers, number))
        for name, answer in answers.items():
            for failed in answer.failures:
                arm = self.arms[failed.arm]
                arm.end(TrialError(f"{name}: {failed.text}", failed.remedy))

    def _request(self, planned: Sequence[Planned], name: str) -> messages.PlaySlices:
        offset_ns = self._clocks[name].offset_ns
        return messages.PlaySlices(
            slices=[
                messages.PlannedSlice(
                    arm=one.arm.server_number,
                    start_unix_ns=one.start_ns + offset_ns,
                    length_us=self._counted.length_us,
                    lead_in_us=self._counted.lead_in_us
                    if one.turn is not None and one.turn.counted
                    else self._counted.length_us,
                )
                for one in planned
            ]
        )

    def _together(
        self, before: dict[str, ClockReading], answers: dict[str, messages.HostSlices], number: int
    ) -> Together:
        parts = {name: answer.played[number] for name, answer in answers.items()}
        starts = [
            start_bounds(part.late_ns, _offset(before[name]), _offset(self._clocks[name]))
            for name, part in parts.items()
        ]
        return Together(parts=parts, skew_ns=skew_ns(starts))

    def _note(self, one: Planned, slice_: Together) -> None:
        whole = not slice_.missing
        if whole:
            one.arm.overhangs_ns.append(slice_.wall_ns - self._counted.length_us * 1000)
        if one.turn is None and whole:
            one.arm.take_warm_up(slice_)
        elif one.turn is not None and one.turn.counted:
            self._first_start_ns = self._first_start_ns or one.start_ns
            one.arm.take(one.turn, one.before, one.start_ns - self._first_start_ns, slice_)

    def _finish(
        self,
        first: dict[str, ClockReading],
        readings: dict[str, messages.WindowReading],
        began_unix_ns: int,
    ) -> None:
        parts = [
            host_part(host, first[host.name], self._clocks[host.name], readings[host.name].noise)
            for host in self._coordinator.hosts.hosts
        ]
        errors_ns = {name: clock.error_ns for name, clock in self._clocks.items()}
        for members in self._sets:
            labels = [arm.label for arm in members]
            for arm in members:
                rounds = arm.rounds(labels, self._counted)
                arm.attempt(partial(arm.finish, rounds, began_unix_ns, parts, errors_ns))


def scheduled(slices: Sequence[Planned], first_ns: int, length_us: int) -> list[Planned]:
    """Slices with their starts: each begins when the one before it has ended on all hosts. Pure."""
    at_ns, planned = first_ns, list[Planned]()
    for one in slices:
        planned.append(one._replace(start_ns=at_ns))
        at_ns += length_us * 1000 + overhang_ns(one.arm.overhangs_ns) + _SPARE_NS
    return planned


def overhang_ns(overhangs_ns: Sequence[int]) -> int:
    """The time limit for an arm's slices, from the length of its last ones. Pure."""
    last = sorted(overhangs_ns[-_LAST_OVERHANGS:])
    if not last:
        return _UNKNOWN_OVERHANG_NS
    most_ns = last[math.ceil(_OVERHANG_QUANTILE * len(last)) - 1]
    return min(max(0, most_ns), _LONGEST_OVERHANG_NS)


def _offset(clock: ClockReading) -> Offset:
    return Offset(clock.offset_ns, clock.error_ns)
