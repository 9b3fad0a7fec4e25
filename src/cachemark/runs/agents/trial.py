"""One trial over several hosts: the steps of a trial on one host, each sent to its host."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial

from cachemark.model.experiment import Load
from cachemark.model.hosts import left_after
from cachemark.model.merging import worst_noise
from cachemark.model.outcome import Outcome
from cachemark.model.plan import Plan, Skipped
from cachemark.model.protocol import RunRequest
from cachemark.runs.agents import messages, remote
from cachemark.runs.agents.clock import ClockReading
from cachemark.runs.agents.coordinator import ANSWER_S, Coordinator
from cachemark.runs.agents.fleet_sitting import play_fleet_sitting
from cachemark.runs.agents.remote_sitting import play_remote_sitting
from cachemark.runs.audit import Audit, Auditor
from cachemark.runs.sittings.sitting import SittingDisplay, SittingSetting
from cachemark.runs.stage import Parties, Say
from cachemark.runs.tapes import TapeCache
from cachemark.runs.trials.judging import host_findings, start_skew_ns
from cachemark.runs.trials.setting import Setting
from cachemark.runs.trials.trial import Sides, TrialRun
from cachemark.runs.trials.window import Window, counts_since, tick_s, use_between


class HostsStage:
    """The stage of a run over hosts."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._lost: list[str] = []

    def unplayable(self, plan: Plan, parties: Parties) -> list[Skipped]:
        """None: outcomes of trials show what a host lacks."""
        del parties
        return plan.skipped

    def audit(self, auditor: Auditor, tapes: TapeCache, announce: Say) -> Audit:
        """Check servers and levels on the server's host. Raises TrialError."""
        del tapes
        plan, host = auditor.plan, self._coordinator.hosts.server
        announce(f"on {host.name}: checks the servers and the levels")
        request = messages.AuditServers(experiment=plan.experiment, skipped=plan.skipped)
        return self._coordinator.ask(host, request, Audit, None)

    def hosts_of(self, load: Load) -> int:
        """The number of hosts that make a load."""
        return len(self._coordinator.hosts.makers_of(load))

    def run_trial(self, setting: Setting, progress: Callable[[int], None]) -> Outcome:
        """Play a trial. Raises HostLostError if a host was lost before, and the run has to stop."""
        self._drop_lost(setting.cell_load)
        trial = HostsTrial(self._coordinator, setting, progress)
        if self._lost:
            trial.record(notes=[f"played without {', '.join(self._lost)}: lost in this run"])
        if trial.attempt(trial.play):
            trial.judge()
        return trial.outcome

    def play_sitting(self, setting: SittingSetting, display: SittingDisplay) -> list[Outcome]:
        """Play a sitting. Raises HostLostError if a host was lost before."""
        self._coordinator.check()
        together = len(self._coordinator.hosts.clients) > 1
        play = play_fleet_sitting if together else play_remote_sitting
        return play(self._coordinator, setting, display)

    def _drop_lost(self, load: Load) -> None:
        """Go on without the lost hosts. Raises HostLostError if the run must stop."""
        coordinator = self._coordinator
        coordinator.find_lost()
        if not coordinator.lost:
            return
        left = left_after(coordinator.hosts, coordinator.lost, load)
        if left is None:
            coordinator.check()
            return
        self._lost += coordinator.lost
        coordinator.go_on_with(left)


class HostsTrial(TrialRun):
    """A trial over hosts while it is played."""

    def __init__(
        self, coordinator: Coordinator, setting: Setting, progress: Callable[[int], None]
    ) -> None:
        super().__init__(setting, progress)
        self._coordinator = coordinator

    def connected_sides(self, stack: ExitStack) -> Sides:
        """Let the hosts start both sides, and connect them.

        Raises UnsupportedError and TrialError.
        """
        setting, coordinator = self.setting, self._coordinator
        stack.callback(self._end)
        clocks = coordinator.clocks()
        makers = coordinator.hosts.makers_of(setting.cell_load)
        measuring = coordinator.hosts.clients if setting.generators else makers
        remote.write_tapes(coordinator, setting, measuring)
        if setting.generators:
            remote.write_tapes(coordinator, setting.generators, makers)
        server = remote.RemoteServer(coordinator, setting.server.text)
        self.record(server=server.facts)
        clients = remote.connected(coordinator, self, server, measuring)
        generators = None
        if self.generators:
            generators = remote.connected(coordinator, self.generators, server, makers)
        player = remote.RemotePlayer(coordinator, clocks, clients, generators)
        window = partial(self._play_window, player, clocks)
        return Sides(server, player, server.started.empty, window)

    def _play_window(
        self, player: remote.RemotePlayer, clocks: Mapping[str, ClockReading], request: RunRequest
    ) -> Window:
        coordinator = self._coordinator
        names = [host.name for host in coordinator.hosts.hosts]
        begin = messages.BeginWindow(tick_s=tick_s(request))
        before = coordinator.ask_each(dict.fromkeys(names, begin), messages.ServerReading, ANSWER_S)
        done = player.run(request, self.watch)
        after = coordinator.ask_each(
            dict.fromkeys(names, messages.EndWindow()), messages.WindowReading, ANSWER_S
        )
        self._record_hosts(player, clocks, after)
        name = coordinator.hosts.server.name
        there = after[name]
        self.record(samples=there.samples)
        began_there_ns = player.began_unix_ns + clocks[name].offset_ns
        return Window(
            done=done,
            generated=player.generated,
            began_unix_ns=player.began_unix_ns,
            before=remote.stats_of(before[name]),
            after=remote.stats_of(there.server),
            use=use_between(before[name].use, there.server.use),
            command_counts=counts_since(
                began_there_ns - there.sampler_began_unix_ns, there.command_counts
            ),
            noise=worst_noise([reading.noise for reading in after.values()]),
        )

    def _record_hosts(
        self,
        player: remote.RemotePlayer,
        clocks: Mapping[str, ClockReading],
        readings: Mapping[str, messages.WindowReading],
    ) -> None:
        """Keep each host's results, and judge the clocks and the start."""
        later = self._coordinator.clocks()
        parts = [
            remote.host_part(
                host,
                clocks[host.name],
                later[host.name],
                readings[host.name].noise,
                player.played.get(host.name),
            )
            for host in self._coordinator.hosts.hosts
        ]
        skew_ns = start_skew_ns(parts)
        errors_ns = {name: reading.error_ns for name, reading in later.items()}
        findings = host_findings(parts, skew_ns, self.elapsed_ns, errors_ns)
        self.record_hosts(parts, skew_ns, findings)

    def _end(self) -> None:
        logs = self._coordinator.end_trial()
        self.record(log="".join(logs.values()))
