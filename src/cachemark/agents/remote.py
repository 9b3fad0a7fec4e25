"""The two sides of a trial on other hosts, used as if they were here."""

from __future__ import annotations

import time
from collections.abc import Mapping

import msgspec

from cachemark.agents.clock import ClockReading
from cachemark.agents.coordinator import ANSWER_S, Coordinator
from cachemark.agents.messages import (
    Played,
    PlayPhase,
    PrepareWorkers,
    ReadServer,
    ServerReading,
    StartedServer,
    StartedWorkers,
    StartServer,
    StartWorkers,
)
from cachemark.endpoints.fleet import RunMonitor, merge
from cachemark.endpoints.servers import ProcessUse, RunningServer
from cachemark.model.errors import TrialError
from cachemark.model.experiment import Load
from cachemark.model.protocol import Done, Prepare, Run
from cachemark.model.server_stats import ServerStats

# By then the request to play must have reached all hosts.
_START_AHEAD_NS = 300_000_000
# A phase that ends by time may last so much longer, besides the workers' own time-outs.
_GRACE_S = 30.0
_START_S = 180.0


class RemoteServer(RunningServer):
    """A server that the server's host has started."""

    def __init__(self, coordinator: Coordinator, server: str) -> None:
        self._coordinator = coordinator
        self.started = coordinator.ask(
            coordinator.hosts.server, StartServer(server=server), StartedServer, _START_S
        )
        super().__init__(self.started.addresses, self.started.facts, [])

    def member_stats(self) -> list[ServerStats]:
        """The `stats` of each member that has them. Raises TrialError."""
        return stats_of(self._read())

    def use(self) -> ProcessUse | None:
        """The resource use so far. Raises TrialError."""
        return self._read().use

    def _read(self) -> ServerReading:
        host = self._coordinator.hosts.server
        return self._coordinator.ask(host, ReadServer(), ServerReading, ANSWER_S)


def stats_of(reading: ServerReading) -> list[ServerStats]:
    """The server's counters in a reading of its host."""
    return [ServerStats(stats) for stats in reading.stats]


class RemoteFleet:
    """The workers on all hosts of clients. Each host plays its own segments of the tape."""

    def __init__(self, coordinator: Coordinator, clocks: Mapping[str, ClockReading]) -> None:
        self._coordinator, self._clocks = coordinator, clocks
        self._names = [host.name for host in coordinator.hosts.clients]
        self.started: dict[str, StartedWorkers] = {}
        self.played: dict[str, Played] = {}
        self.began_unix_ns = 0

    def start(self, client: str, load: Load, ready_s: float) -> StartedWorkers:
        """Start the workers; returns what those of the first host are.

        Raises TrialError, also if the hosts have different versions of the library.
        """
        request = StartWorkers(client=client, load=load, ready_s=ready_s)
        self.started = self._coordinator.ask_each(
            dict.fromkeys(self._names, request), StartedWorkers, ready_s + _START_S
        )
        first, *others = self._names
        for name in others:
            if self.started[name].ready != self.started[first].ready:
                raise TrialError(
                    f"{first} and {name} have different builds of {client}: "
                    f"{_build(self.started[first])} and {_build(self.started[name])}",
                    "set up the same versions on all hosts",
                )
        return self.started[first]

    def prepare(self, request: Prepare, ready_s: float) -> None:
        """Connect all workers. Raises TrialError, UnsupportedError."""
        segments, first = sum(one.count for one in self.started.values()), 0
        requests: dict[str, PrepareWorkers] = {}
        for name in self._names:
            requests[name] = PrepareWorkers(
                request=request, first=first, segments=segments, ready_s=ready_s
            )
            first += self.started[name].count
        self._coordinator.ask_each(requests, msgspec.Raw, ready_s + _START_S)

    def run(self, request: Run, watch: RunMonitor) -> Done:
        """Play a phase on all hosts, from one instant on. Raises TrialError."""
        start_ns = time.time_ns() + _START_AHEAD_NS
        silence_s = watch.silence_timeout_s
        limit_s = None
        if request.duration_ms is not None:
            limit_s = request.duration_ms / 1e3 + silence_s + _GRACE_S
        self.played = self._coordinator.ask_each(
            {
                name: PlayPhase(
                    run=msgspec.structs.replace(
                        request, start_unix_ns=start_ns + self._clocks[name].offset_ns
                    ),
                    silence_s=silence_s,
                )
                for name in self._names
            },
            Played,
            limit_s,
        )
        self.began_unix_ns = start_ns
        return merge([self.played[name].done for name in self._names])


def _build(started: StartedWorkers) -> str:
    ready = started.ready
    return f"{ready.library} {ready.library_version} on {ready.runtime}"
