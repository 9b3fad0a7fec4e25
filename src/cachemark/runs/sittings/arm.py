"""The arms of a sitting: each is one cell, with its server and its worker, and its slices so far.

Arms start side by side, because most of a start is waiting: for an interpreter, for a connection,
for the last key to be stored. They end side by side, too: each worker sums up what it noted.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Protocol

from cachemark.host.placement import usable_cpus
from cachemark.model.protocol import Slice
from cachemark.model.rounds import Rounds
from cachemark.model.server_stats import ServerStats
from cachemark.runs.sittings.meters import TurnCost
from cachemark.runs.sittings.slice_log import SliceLog
from cachemark.runs.sittings.warm_up import WarmUpSlice, needed_ms
from cachemark.runs.trials.setting import Setting
from cachemark.runs.trials.trial import PREFILL, Endpoints, TrialRun

# Starts that go on at the same time, beyond the number of CPUs: some of them only wait.
_MORE_STARTS = 2
_KILL_AGAIN_S = 0.05


class Startable(Protocol):
    """A party of a sitting that can be started beside others."""

    def start(self) -> None:
        """Start it, and wait until it is ready."""

    def kill_workers(self) -> None:
        """Make an unfinished start fail soon. Called from another thread."""


class SlicedArm(ABC):
    """A cell of a sitting, wherever it is played, and its slices so far.

    `number` is that in its set.
    """

    def __init__(self, setting: Setting, number: int) -> None:
        self.setting, self.number = setting, number
        self.log = SliceLog()
        self.warm_up_slices: list[WarmUpSlice] = []
        self.start_ns, self.operation_ns = 0, setting.operation_ns
        self.needed_ms = 0.0
        self.turn_cost = TurnCost()

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether it can play: it has started, and has not failed."""

    @property
    def label(self) -> str:
        """The arm's name in its set."""
        cell = self.setting.trial.cell
        return f"{cell.client} · {cell.server}"

    def check_length(self, length_us: int, hosts: int = 1) -> None:
        """Note the length that its slices need. Raises TrialError if it is too slow for any."""
        load = self.setting.load
        callers = load.processes * load.threads * hosts
        self.needed_ms = needed_ms(self.warm_up_slices, length_us, callers)

    def rounds(self, labels: list[str], counted: Slice) -> Rounds:
        """Its part of the sitting, in a set with these labels."""
        log = self.log
        return Rounds(
            arms=labels,
            arm=self.number,
            length_us=counted.length_us,
            lead_in_us=counted.lead_in_us,
            operation_ns=self.operation_ns,
            start_ns=self.start_ns,
            warmup_rounds=len(self.warm_up_slices),
            turn_cost_ns=self.turn_cost.wall_ns,
            turn_cpu_ns=self.turn_cost.cpu_ns,
            void_slices=log.void_slices,
            void_ops=log.void_ops,
            paused_slices=log.paused_slices,
            paused_ns=log.paused_ns,
            slices=log.slices(),
        )


class Arm(SlicedArm):
    """An arm on this machine: its trial, and both of its ends."""

    def __init__(self, setting: Setting, number: int) -> None:
        super().__init__(setting, number)
        self.trial = TrialRun(setting, lambda _: None)
        self.stack = ExitStack()
        self.ends: Endpoints | None = None
        self.before: list[ServerStats] = []
        self.began_unix_ns = 0

    @property
    def alive(self) -> bool:
        """Whether both of its ends run."""
        return self.ends is not None

    def attempt(self, action: Callable[[Endpoints], None]) -> None:
        """Do something with both ends; a failure ends the arm, and is in its outcome."""
        ends = self.ends
        if ends is not None and not self.trial.attempt(lambda: action(ends)):
            self.close()

    def close(self) -> None:
        """Stop the arm's processes."""
        self.ends = None
        self.stack.close()

    def start(self) -> None:
        """Start, connect and prefill."""
        if not self.trial.attempt(self._start):
            self.close()

    def kill_workers(self) -> None:
        """Kill the workers, also while they start."""
        self.trial.kill_workers()

    def _start(self) -> None:
        began = time.monotonic_ns()
        ends = self.trial.connected_ends(self.stack)
        self.trial.prefill(partial(ends.fleet.run, PREFILL, self.trial.watch))
        self.ends = ends
        self.start_ns = time.monotonic_ns() - began

    def begin(self, ends: Endpoints) -> None:
        """Make the worker ready for slices, from the start of its tape."""
        ends.fleet.begin_slices(self.setting.timing.ready_ms / 1e3)

    def read_before(self, ends: Endpoints) -> None:
        """Read the server's counters before the first slice."""
        self.before = ends.server.member_stats()
        self.began_unix_ns = time.time_ns()


@contextmanager
def starting_threads() -> Generator[ThreadPoolExecutor]:
    """The threads that start arms. They must live longer than the processes of the arms.

    The kernel kills a child when the thread that started it ends, not when its process does.
    """
    with ThreadPoolExecutor(len(usable_cpus()) + _MORE_STARTS) as threads:
        yield threads


def start_side_by_side(
    threads: ThreadPoolExecutor, arms: Sequence[Startable], started: Callable[[int], None]
) -> None:
    """Start all arms, a few at a time; `started` is called after each one with their number so far.

    A failure of an arm is in its outcome. If `started` raises, or the user interrupts, no arm is
    still starting when this ends.
    """
    do_side_by_side(threads, arms, [arm.start for arm in arms], started)


def do_side_by_side(
    threads: ThreadPoolExecutor,
    arms: Sequence[Startable],
    actions: Sequence[Callable[[], None]],
    done: Callable[[int], None],
) -> None:
    """Do something with each arm, a few at a time; `done` gets their number so far.

    If `done` raises, or the user interrupts, no action goes on when this ends: the workers of all
    arms are killed.
    """
    begun = [threads.submit(action) for action in actions]
    try:
        for number, ended in enumerate(as_completed(begun), 1):
            ended.result()
            done(number)
    except BaseException:
        threads.shutdown(wait=False, cancel_futures=True)
        _end_actions(arms, begun)
        raise


def _end_actions(arms: Sequence[Startable], begun: Sequence[Future[None]]) -> None:
    """Kill workers until no thread waits for one."""
    while going := [action for action in begun if not action.done()]:
        for arm in arms:
            arm.kill_workers()
        wait(going, _KILL_AGAIN_S)
