"""The two sides of a trial on other hosts, used as if they were here."""

import time
from collections.abc import Mapping, Sequence

import msgspec

from cachemark.endpoints.fleet import RunMonitor
from cachemark.endpoints.servers import ProcessUse, RunningServer
from cachemark.model.errors import TrialError
from cachemark.model.experiment import Load
from cachemark.model.hosts import Host
from cachemark.model.merging import merge
from cachemark.model.outcome import HostNoise, HostPart
from cachemark.model.protocol import Done, Prepare, RunRequest
from cachemark.model.server_stats import ServerStats
from cachemark.model.tape_facts import TapeFacts
from cachemark.runs.agents import messages
from cachemark.runs.agents.clock import ClockReading
from cachemark.runs.agents.coordinator import ANSWER_S, Coordinator
from cachemark.runs.trials.setting import Setting
from cachemark.runs.trials.trial import TrialRun

# By the planned start the request to play must have reached all hosts: some time, and some for
# each host. The coordinator needs 2 to 4 ms of CPU time to ask one.
_START_AHEAD_NS = 300_000_000
_START_AHEAD_OF_HOST_NS = 10_000_000
# A phase that ends by time may last longer by this, and by the workers' own time-outs.
_GRACE_S = 30.0
_START_S = 180.0
_TAPE_S = 600.0


def start_servers(coordinator: Coordinator, servers: Sequence[str]) -> list[messages.ServerStart]:
    """Start servers on the server's host; returns the result of each. Raises TrialError."""
    request = messages.StartServers(servers=list(servers))
    limit_s = _START_S * len(servers)
    return coordinator.ask(coordinator.hosts.server, request, list[messages.ServerStart], limit_s)


def started_or_raise(
    coordinator: Coordinator, start: messages.ServerStart
) -> messages.StartedServer:
    """The server that was started. Raises TrialError, UnsupportedError if it was not."""
    if start.started is not None:
        return start.started
    assert start.failure is not None
    raise start.failure.error(coordinator.hosts.server.name)


def host_part(
    host: Host,
    before: ClockReading,
    after: ClockReading,
    noise: HostNoise | None,
    played: messages.HostPlayed | None = None,
) -> HostPart:
    """The part of an outcome about a host: its clock `before` and `after`, its noise, its part."""
    return HostPart(
        name=host.name,
        roles=list(host.roles),
        address=host.address,
        clock_offset_ns=before.offset_ns,
        clock_error_ns=before.error_ns,
        clock_moved_ns=after.offset_ns - before.offset_ns,
        round_trip_ns=before.round_trip_median_ns,
        late_ns=played.late_ns if played else None,
        measure=played.done if played else None,
        observed=played.observed if played else None,
        noise=noise,
    )


def write_tapes(coordinator: Coordinator, setting: Setting, hosts: Sequence[Host]) -> None:
    """Let each of these hosts write a trial's tape, and compare it. Raises TrialError."""
    request = messages.WriteTape(
        workload=setting.workload,
        load=setting.load,
        timing=setting.timing,
        seed=setting.trial.tape_seed,
        generations=setting.tape.generations,
    )
    names = [host.name for host in hosts]
    tapes = coordinator.ask_each(dict.fromkeys(names, request), TapeFacts, _TAPE_S)
    for name, tape in tapes.items():
        if tape.sha256 != setting.tape.facts.sha256:
            raise TrialError(
                f"{name}: its tape is another one: {tape.sha256[:12]}, here it is "
                f"{setting.tape.facts.sha256[:12]}",
                "a trace must be the same file on all hosts",
            )


class StartedElsewhere(RunningServer):
    """A server that the server's host has started, as `prepare` needs to know it."""

    def __init__(self, started: messages.StartedServer) -> None:
        super().__init__(started.addresses, started.facts, [])
        self.started = started

    def worker_options(self, wire: str) -> dict[str, str]:
        """The options with which workers connect; their hosts write the files themselves."""
        del wire
        return dict(self.started.tls)


class RemoteServer(StartedElsewhere):
    """The same, with its counters."""

    def __init__(self, coordinator: Coordinator, server: str) -> None:
        self._coordinator = coordinator
        (start,) = start_servers(coordinator, [server])
        super().__init__(started_or_raise(coordinator, start))

    def member_stats(self) -> list[ServerStats]:
        return stats_of(self._read())

    def use(self) -> ProcessUse | None:
        """The resource use so far. Raises TrialError."""
        return self._read().use

    def _read(self) -> messages.ServerReading:
        host = self._coordinator.hosts.server
        return self._coordinator.ask(host, messages.ReadServer(), messages.ServerReading, ANSWER_S)


def stats_of(reading: messages.ServerReading) -> list[ServerStats]:
    """The server's counters in a reading of its host."""
    return [ServerStats(stats) for stats in reading.stats]


class RemoteFleet:
    """The workers on several hosts. Each host plays its own segments of the tape.

    `arm` is the number of their server in a sitting; then only this arm fails with them.
    """

    def __init__(
        self, coordinator: Coordinator, hosts: Sequence[Host], arm: int | None = None
    ) -> None:
        self._ask = coordinator.ask_each if arm is None else coordinator.ask_arm
        self._arm = arm or 0
        self.names = [host.name for host in hosts]
        self.started: dict[str, messages.StartedWorkers] = {}
        self.played: dict[str, messages.HostPlayed] = {}

    def start(self, client: str, load: Load, ready_s: float) -> messages.StartedWorkers:
        """Start the workers; returns the facts of the first host's workers.

        Raises TrialError, also if the hosts have different versions of the library.
        """
        request = messages.StartWorkers(arm=self._arm, client=client, load=load, ready_s=ready_s)
        self.started = self._ask(
            dict.fromkeys(self.names, request), messages.StartedWorkers, ready_s + _START_S
        )
        first, *others = self.names
        for name in others:
            if self.started[name].ready != self.started[first].ready:
                raise TrialError(
                    f"{first} and {name} have different builds of {client}: "
                    f"{_build(self.started[first])} and {_build(self.started[name])}",
                    "set up the same versions on all hosts",
                )
        return self.started[first]

    def prepare(self, request: Prepare, server: messages.StartedServer, ready_s: float) -> None:
        """Connect all workers. Raises TrialError, UnsupportedError."""
        segments, first = sum(one.count for one in self.started.values()), 0
        requests: dict[str, messages.PrepareWorkers] = {}
        for name in self.names:
            requests[name] = messages.PrepareWorkers(
                arm=self._arm,
                request=request,
                tls=server.tls,
                first=first,
                segments=segments,
                ready_s=ready_s,
            )
            first += self.started[name].count
        self._ask(requests, msgspec.Raw, ready_s + _START_S)

    def keep(self, played: Mapping[str, messages.HostPlayed]) -> Done:
        """Keep its hosts' results of a phase; returns their sum."""
        self.played = {name: played[name] for name in self.names}
        return merge([self.played[name].done for name in self.names])


def connected(
    coordinator: Coordinator,
    side: TrialRun,
    server: StartedElsewhere,
    hosts: Sequence[Host],
    arm: int | None = None,
) -> RemoteFleet:
    """Start and connect the workers of one side of a trial; `arm` as in `RemoteFleet`.

    Raises UnsupportedError and TrialError.
    """
    setting = side.setting
    ready_s = setting.timing.ready_ms / 1e3
    fleet = RemoteFleet(coordinator, hosts, arm)
    workers = fleet.start(setting.client.text, setting.load, ready_s)
    side.record(
        worker=workers.ready,
        worker_command=workers.command,
        worker_cpus=workers.cpus,
        binaries=[*server.started.binaries, *workers.binaries],
    )
    fleet.prepare(side.prepare_request(server, workers.ready), server.started, ready_s)
    return fleet


class RemotePlayer:
    """Plays phases on the hosts of clients and, where there are some, on those that make the load.

    `generated` is what the latter did in the last phase.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        clocks: Mapping[str, ClockReading],
        clients: RemoteFleet,
        generators: RemoteFleet | None,
    ) -> None:
        self._coordinator, self._clocks = coordinator, clocks
        self._clients, self._generators = clients, generators
        self.generated: Done | None = None
        self.began_unix_ns = 0

    @property
    def played(self) -> dict[str, messages.HostPlayed]:
        """The results of each host in the last phase."""
        return self._clients.played | (self._generators.played if self._generators else {})

    def run(self, request: RunRequest, watch: RunMonitor) -> Done:
        """Play a phase, from one instant on. The generators alone store the keys.

        Raises TrialError.
        """
        clients, generators = self._clients, self._generators
        if generators is None:
            return clients.keep(self._play(clients.names, request, watch))
        if request.phase == "prefill":
            return generators.keep(self._play(generators.names, request, watch))
        played = self._play([*clients.names, *generators.names], request, watch)
        self.generated = generators.keep(played)
        return clients.keep(played)

    def bye(self) -> None:
        """Nothing: each host ends its workers when the trial ends."""

    def _play(
        self, names: Sequence[str], request: RunRequest, watch: RunMonitor
    ) -> dict[str, messages.HostPlayed]:
        ahead_ns = _START_AHEAD_NS + _START_AHEAD_OF_HOST_NS * len(names)
        start_ns = time.time_ns() + ahead_ns
        silence_s = watch.silence_timeout_s
        limit_s = None
        if request.duration_ms is not None:
            limit_s = request.duration_ms / 1e3 + silence_s + _GRACE_S
        played = self._coordinator.ask_each(
            {
                name: messages.PlayPhase(
                    run=msgspec.structs.replace(
                        request, start_unix_ns=start_ns + self._clocks[name].offset_ns
                    ),
                    silence_s=silence_s,
                )
                for name in names
            },
            messages.HostPlayed,
            limit_s,
        )
        self.began_unix_ns = start_ns
        return played


def _build(started: messages.StartedWorkers) -> str:
    ready = started.ready
    return f"{ready.library} {ready.library_version} on {ready.runtime}"
