"""An arm of a sitting that several hosts of clients play together, as the coordinator sees it."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from cachemark.host.cpu_meter import UNKNOWN_NS
from cachemark.model.errors import TrialError
from cachemark.model.merging import merge, merge_slices, worst_noise
from cachemark.model.outcome import HostPart
from cachemark.model.protocol import Done, RunRequest
from cachemark.model.rounds import SKEW_LIMIT_NS, Rounds
from cachemark.runs.agents import messages
from cachemark.runs.agents.coordinator import ANSWER_S, Coordinator
from cachemark.runs.agents.remote import (
    StartedElsewhere,
    connected,
    started_or_raise,
    stats_of,
    write_tapes,
)
from cachemark.runs.sittings.arm import SlicedArm
from cachemark.runs.sittings.meters import CpuReading, TurnCost
from cachemark.runs.sittings.order import Turn
from cachemark.runs.sittings.slice_log import SlicePlace
from cachemark.runs.sittings.warm_up import WarmUpSlice
from cachemark.runs.trials.judging import arm_findings
from cachemark.runs.trials.setting import Setting
from cachemark.runs.trials.trial import TrialRun
from cachemark.runs.trials.window import Window, use_between

T = TypeVar("T")
# The time for an answer beside the workers' own time-outs.
_GRACE_S = 60.0


class Together(msgspec.Struct, frozen=True, kw_only=True):
    """A slice on all hosts, by name; `skew_ns` is how far apart two can have started it."""

    parts: Mapping[str, messages.PlayedSlice]
    skew_ns: int

    @property
    def missing(self) -> bool:
        """Whether at least one host has not played the slice."""
        return any(part.done is None for part in self.parts.values())

    @property
    def apart(self) -> bool:
        """Whether a host is missing, or the hosts started too far apart."""
        return self.missing or self.skew_ns > SKEW_LIMIT_NS

    @property
    def paused_ns(self) -> int:
        """Its excess over the planned length on a host with a pause; 0: on none."""
        return max(part.paused_ns for part in self.parts.values())

    @property
    def wall_ns(self) -> int:
        """From the planned start to the last host's answer."""
        return max(part.wall_ns for part in self.parts.values())

    @property
    def cpu(self) -> CpuReading:
        """Its CPU times on all hosts, as the columns of `Slices` define them."""
        parts = [part.cpu for part in self.parts.values()]
        return CpuReading(
            worker_ns=_sum_if_known([part.worker_ns for part in parts]),
            # Only the host that has the server knows it.
            server_ns=max(part.server_ns for part in parts),
            idle_ns=max(part.idle_ns for part in parts),
            steal_ns=max(part.steal_ns for part in parts),
            queued_ns=_sum_if_known([part.queued_ns for part in parts]),
        )


class FleetArm(TrialRun, SlicedArm):
    """An arm whose server is on one host, and whose workers are on several.

    `server_number` is the number of its server on its host.
    """

    def __init__(
        self, coordinator: Coordinator, setting: Setting, *, number: int, server_number: int
    ) -> None:
        TrialRun.__init__(self, setting, lambda _: None)
        SlicedArm.__init__(self, setting, number)
        self._coordinator = coordinator
        self._names = [host.name for host in coordinator.hosts.makers_of(setting.cell_load)]
        self.server_number = server_number
        self._alive = True
        self.overhangs_ns: list[int] = []
        self._started: messages.StartedServer | None = None
        self._before = messages.ServerReading()
        self._late_ns = dict.fromkeys(self._names, 0)
        self._slices_ns = dict.fromkeys(self._names, 0)
        self._skew_ns = self._played_ns = 0

    @property
    def alive(self) -> bool:
        """Whether it has not failed."""
        return self._alive

    def attempt(self, action: Callable[[], None]) -> bool:
        """Do something, unless the arm has failed; a failure ends it, and is in its outcome."""
        self._alive = self._alive and super().attempt(action)
        return self._alive

    def end(self, error: TrialError) -> None:
        """End an arm that has failed on a host."""
        if self._alive:
            self._alive = False
            self.fail(error)

    def start_clients(self, start: messages.ServerStart) -> None:
        """Connect workers to the server, and store the keys. Raises TrialError."""
        began_ns = self.elapsed_ns
        self._started = started = started_or_raise(self._coordinator, start)
        self.record(server=started.facts)
        hosts = [self._coordinator.hosts.named(name) for name in self._names]
        write_tapes(self._coordinator, self.setting, hosts)
        server = StartedElsewhere(started)
        connected(self._coordinator, self, server, hosts, self.server_number)
        self.prefill(self._prefill)
        self.start_ns = self.elapsed_ns - began_ns

    def begin(self) -> None:
        """Make the workers ready for slices, from the start of their tape. Raises TrialError."""
        ready_s = self.setting.timing.ready_ms / 1e3
        request = messages.HostBeginSlices(arm=self.server_number, ready_s=ready_s)
        costs = self._ask(request, TurnCost, ready_s + _GRACE_S)
        self.turn_cost = TurnCost(
            wall_ns=max(cost.wall_ns for cost in costs), cpu_ns=sum(cost.cpu_ns for cost in costs)
        )
        self._played_ns = 0

    def read_before(self) -> None:
        """Read the server's counters before the first slice. Raises TrialError."""
        self._before = self._read_server()

    def take_warm_up(self, slice_: Together) -> None:
        """Note a slice of the warm-up that all hosts have played."""
        ops = sum(part.done.lead_in_ops for part in slice_.parts.values() if part.done)
        self.warm_up_slices.append(WarmUpSlice(ops, slice_.wall_ns))

    def take(self, turn: Turn, before: int, began_ns: int, slice_: Together) -> None:
        """Note a slice that is counted, or void."""
        parts = slice_.parts
        done = merge_slices([part.done for part in parts.values() if part.done])
        self._played_ns += done.elapsed_ns
        for name, part in parts.items():
            self._slices_ns[name] += part.done.elapsed_ns if part.done else 0
        if slice_.apart:
            self.log.add_void(done)
            return
        if slice_.paused_ns:
            self.log.add_paused(done, slice_.cpu, slice_.paused_ns)
            return
        late_ns = {name: part.late_ns for name, part in parts.items()}
        self._late_ns = {name: max(ns, self._late_ns[name]) for name, ns in late_ns.items()}
        self._skew_ns = max(self._skew_ns, slice_.skew_ns)
        self.log.add(
            SlicePlace(turn, before, began_ns, slice_.wall_ns),
            done,
            slice_.cpu,
            (max(late_ns.values()), slice_.skew_ns),
        )

    def finish(
        self,
        rounds: Rounds,
        began_unix_ns: int,
        parts: Sequence[HostPart],
        errors_ns: Mapping[str, int],
    ) -> None:
        """End the slices and judge them; `rounds` is its part of the sitting.

        `parts` are all hosts as they were in the sitting, `errors_ns` the errors of their clocks.
        Raises TrialError.
        """
        assert self._started is not None
        request = messages.HostEndSlices(arm=self.server_number)
        played = dict(zip(self._names, self._ask(request, Done, _GRACE_S), strict=True))
        after = self._read_server()
        done = msgspec.structs.replace(
            merge(list(played.values())),
            elapsed_ns=self._played_ns,
            send_elapsed_ns=self._played_ns,
        )
        window = Window(
            done=done,
            began_unix_ns=began_unix_ns,
            before=stats_of(self._before),
            after=stats_of(after),
            use=use_between(self._before.use, after.use),
            command_counts=[],
            noise=worst_noise([part.noise for part in parts if part.noise]),
            rounds=rounds,
        )
        self.record_window(self._started.empty, window)
        hosts = [
            msgspec.structs.replace(
                part,
                late_ns=self._late_ns[part.name],
                measure=played[part.name],
                slices_ns=self._slices_ns[part.name],
            )
            if part.name in played
            else part
            for part in parts
        ]
        findings = arm_findings(hosts, self.elapsed_ns, errors_ns)
        self.record_hosts(hosts, self._skew_ns, findings)
        self.judge()

    def _prefill(self) -> Done:
        request = messages.PlayPhase(
            arm=self.server_number,
            run=RunRequest(phase="prefill"),
            silence_s=self.watch.silence_timeout_s,
        )
        return merge([played.done for played in self._ask(request, messages.HostPlayed, None)])

    def _read_server(self) -> messages.ServerReading:
        name = self._coordinator.hosts.server.name
        request = messages.ReadServer(arm=self.server_number)
        return self._coordinator.ask_arm({name: request}, messages.ServerReading, ANSWER_S)[name]

    def _ask(
        self, request: messages.HostRequest, answer: type[T], timeout_s: float | None
    ) -> list[T]:
        """Ask all of its hosts the same; returns their answers in the order of `_names`."""
        asked = dict.fromkeys(self._names, request)
        answers = self._coordinator.ask_arm(asked, answer, timeout_s)
        return [answers[name] for name in self._names]


def _sum_if_known(times_ns: Sequence[int]) -> int:
    return sum(times_ns) if min(times_ns) >= 0 else UNKNOWN_NS
