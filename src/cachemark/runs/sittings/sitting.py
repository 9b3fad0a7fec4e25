"""One sitting: cells that are compared with each other are all ready, and play slices in turn.

Each arm (a cell of the sitting) has a fresh server and a fresh worker of its own. So no client
changes what another one reads, and the counters of a server belong to one client. Each arm becomes
one outcome, as a trial does.
"""

import gc
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial

import msgspec

from cachemark.analysis.verdict.slice_bias import callers_of, grown_ms
from cachemark.host.memory import check_memory
from cachemark.host.noise import NoiseMonitor
from cachemark.model.experiment import RoundsTiming
from cachemark.model.outcome import HostNoise, Outcome, ServerUse
from cachemark.model.plan import warmup_ms
from cachemark.model.protocol import Slice, SliceDone
from cachemark.runs.sittings.arm import (
    Arm,
    SlicedArm,
    do_side_by_side,
    start_side_by_side,
    starting_threads,
)
from cachemark.runs.sittings.meters import SliceMeters
from cachemark.runs.sittings.order import Turn, random_square, squares_for, turns
from cachemark.runs.sittings.slice_log import SlicePlace
from cachemark.runs.sittings.warm_up import WarmUpSlice, is_warm, most_rounds, operation_ns
from cachemark.runs.trials.setting import Setting
from cachemark.runs.trials.trial import Endpoints
from cachemark.runs.trials.window import Window, slab_classes, use_between


class SittingDisplay(msgspec.Struct, frozen=True, kw_only=True):
    """Receivers of a sitting's reports: its present step, and the played part of its slices."""

    doing: Callable[[str], None]
    played: Callable[[float], None]


class SittingSetting(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a sitting. `seed` is for the order of play.

    `grown_ms`: the length of slices that an earlier sitting of the run has decided, at least.
    """

    sets: list[list[Setting]]
    rounds: RoundsTiming
    grown_ms: float = 0.0
    seed: int
    awake_pid: int | None = None

    def counted(self, slice_ms: float) -> Slice:
        """A counted slice of this length."""
        length_us = round(slice_ms * 1000)
        lead_in_us = round(length_us * self.rounds.lead_in_percent / 100)
        return Slice(length_us=length_us, lead_in_us=lead_in_us)

    def grown(self, arms: Sequence[SlicedArm], hosts: int = 1) -> Slice:
        """A counted slice that is long enough for the operations of all arms, within the limit.

        Many callers and slow operations need it. Each of `hosts` has the callers of an arm's load.
        """
        for arm in arms:
            callers = callers_of(arm.setting.load) * hosts
            arm.operation_ns = arm.operation_ns or operation_ns(arm.warm_up_slices, callers)
        longest_ns = max(arm.operation_ns if arm.alive else 0 for arm in arms)
        needed_ms = max(arm.needed_ms if arm.alive else 0 for arm in arms)
        return self.counted(max(self.grown_ms, needed_ms, grown_ms(self.rounds, longest_ns)))


def play_sitting(setting: SittingSetting, display: SittingDisplay) -> list[Outcome]:
    """Play a sitting. Never raises for a failure of a server or worker, which is in its outcome.

    An arm that fails leaves the sitting; the others go on. Raises UsageError if the processes do
    not fit into the machine's memory.
    """
    with ExitStack() as stack:
        sitting = _Sitting(setting, display, stack)
        sitting.play()
    return [arm.trial.outcome for arm in sitting.arms]


class _Sitting:
    def __init__(self, setting: SittingSetting, display: SittingDisplay, stack: ExitStack) -> None:
        self._setting, self._display = setting, display
        self._order = random.Random(setting.seed)
        self._meters = SliceMeters()
        stack.callback(self._meters.close)
        self._threads = stack.enter_context(starting_threads())
        self._use(setting.counted(setting.rounds.slice_ms))
        self._sets = [
            [Arm(own, number) for number, own in enumerate(members)] for members in setting.sets
        ]
        self.arms = [arm for members in self._sets for arm in members]
        for arm in self.arms:
            stack.callback(arm.close)
        self._began_ns = 0

    def _use(self, counted: Slice) -> None:
        self._counted = counted
        self._uncounted = Slice(length_us=counted.length_us, lead_in_us=counted.length_us)

    def play(self) -> None:
        """Start all arms, warm them up, play the squares, record the results."""
        self._started(0)
        start_side_by_side(self._threads, self.arms, self._started)
        for arm in self.arms:
            arm.attempt(arm.begin)
        self._warm_up()
        for arm in self.arms:
            arm.attempt(arm.begin)
            arm.attempt(partial(self._read_clocks, arm))
        noise = self._played_with_noise()
        self._display.doing("sums up")
        ends = [
            partial(self._end, arm, [other.label for other in members], noise)
            for members in self._sets
            for arm in members
        ]
        do_side_by_side(self._threads, self.arms, ends, lambda _: None)

    def _started(self, count: int) -> None:
        self._display.doing(f"{count} of {len(self.arms)} clients are filled (prefill)")
        check_memory(f"{len(self.arms)} clients, each with its server")

    def _warm_up(self) -> None:
        """Play rounds without counting, until each arm is warm or has had its time."""
        longest_ms = max(warmup_ms(a.setting.workload, a.setting.timing) for a in self.arms)
        for _ in range(most_rounds(longest_ms, self._setting.rounds.slice_ms)):
            self._display.doing("warms up")
            cold = [arm for arm in self.arms if arm.alive and not is_warm(arm.warm_up_slices)]
            self._order.shuffle(cold)
            for arm in cold:
                arm.attempt(partial(self._warm_up_slice, arm))
        for arm in self.arms:
            arm.attempt(lambda _, arm=arm: arm.check_length(self._uncounted.length_us))
        self._use(self._setting.grown(self.arms))

    def _read_clocks(self, arm: Arm, ends: Endpoints) -> None:
        self._meters.add(arm, ends.fleet, ends.server)
        arm.turn_cost = self._meters.turn_cost(arm, ends.fleet)

    def _warm_up_slice(self, arm: Arm, ends: Endpoints) -> None:
        began = time.monotonic_ns()
        ops = ends.fleet.slice(self._uncounted).lead_in_ops
        arm.warm_up_slices.append(WarmUpSlice(ops, time.monotonic_ns() - began))

    def _played_with_noise(self) -> HostNoise:
        noise = NoiseMonitor()
        for arm in self.arms:
            arm.attempt(arm.read_before)
        fleets = [arm.ends.fleet for arm in self.arms if arm.ends]
        workers = [worker.pid for fleet in fleets for worker in fleet.workers]
        servers = [pid for fleet in fleets for pid in fleet.server_pids]
        noise.start(workers, servers, self._setting.awake_pid)
        gc.collect()
        # A collection of garbage takes milliseconds, and there are none between two slices.
        gc.disable()
        try:
            self._play_squares()
        finally:
            gc.enable()
        return noise.stop()

    def _play_squares(self) -> None:
        rows = rows_of(self._order, self._sets, self._counted.length_us / 1e3)
        self._began_ns = time.monotonic_ns()
        for played, (part, row) in enumerate(rows):
            self._display.played(played / len(rows))
            before = row[0].arm
            for turn in row:
                arm = self._sets[part][turn.arm]
                arm.attempt(lambda ends, a=arm, t=turn, b=before: self._turn(a, ends, t, b))
                before = turn.arm

    def _turn(self, arm: Arm, ends: Endpoints, turn: Turn, before: int) -> None:
        if not turn.counted:
            ends.fleet.slice(self._uncounted)
            return
        ended = self._meters.begin(arm)
        began = time.monotonic_ns()
        done: SliceDone = ends.fleet.slice(self._counted)
        wall_ns = time.monotonic_ns() - began
        cpu = ended()
        if ends.fleet.slice_paused_ns:
            arm.log.add_paused(done, cpu, ends.fleet.slice_paused_ns)
            return
        place = SlicePlace(turn, before, began - self._began_ns, wall_ns)
        arm.log.add(place, done, cpu)

    def _end(self, arm: Arm, labels: list[str], noise: HostNoise) -> None:
        """Let the worker sum up, judge the arm, and stop its processes. Measures nothing."""
        arm.attempt(lambda ends: self._finish(arm, ends, labels, noise))
        arm.close()

    def _finish(self, arm: Arm, ends: Endpoints, labels: list[str], noise: HostNoise) -> None:
        done = ends.fleet.end_slices()
        rounds = arm.rounds(labels, self._counted)
        after = ends.server.member_stats()
        window = Window(
            done=done,
            began_unix_ns=arm.began_unix_ns,
            before=arm.before,
            after=after,
            slab_classes=slab_classes(ends.server, arm.before, after),
            use=_server_use(ends, sum(rounds.slices.server_cpu_ns) + arm.log.void_cpu_ns),
            command_counts=[],
            noise=noise,
            rounds=rounds,
        )
        arm.trial.record_window(ends.empty, window)
        ends.fleet.bye()
        arm.trial.judge()


def rows_of(
    order: random.Random, sets: Sequence[Sequence[SlicedArm]], slice_ms: float
) -> list[tuple[int, list[Turn]]]:
    """The rows of all squares of all sets, each with the number of its set, in the order of play.

    Arms that have failed take no part.
    """
    rows: list[list[list[Turn]]] = []
    for members in sets:
        alive = [arm.number for arm in members if arm.alive]
        measure_ms = members[0].setting.timing.measure_ms
        squares = squares_for(measure_ms, slice_ms, len(alive)) if alive else 0
        played = [by_row(turns(n, random_square(order, alive))) for n in range(squares)]
        rows.append([row for square in played for row in square])
    return merge_rows(rows)


def by_row(played: Iterator[Turn]) -> list[list[Turn]]:
    """Turns in lists of one row each, in their order. Pure."""
    rows: dict[tuple[int, int], list[Turn]] = {}
    for turn in played:
        rows.setdefault((turn.square, turn.row), []).append(turn)
    return list(rows.values())


def merge_rows(sets: Sequence[list[list[Turn]]]) -> list[tuple[int, list[Turn]]]:
    """Alternate the rows of several sets so that all sets advance alike; (set, row). Pure."""
    placed = [
        ((number + 0.5) / len(rows), part, row)
        for part, rows in enumerate(sets)
        for number, row in enumerate(rows)
    ]
    placed.sort(key=lambda place: place[:2])
    return [(part, row) for _, part, row in placed]


def _server_use(ends: Endpoints, cpu_ns: int) -> ServerUse | None:
    """CPU time of the arm's own slices only, since no arm uses the server in between."""
    use = use_between(ends.empty, ends.server.use())
    return msgspec.structs.replace(use, cpu_ns=cpu_ns) if use else None
