"""The CPU clocks of a sitting's arms on this host, read before and after each slice."""

import time
from collections.abc import Callable, Hashable
from statistics import median

import msgspec

from cachemark.endpoints.fleet import Fleet
from cachemark.endpoints.servers import RunningServer
from cachemark.host.cpu_meter import UNKNOWN_NS, CpuMeter, QueueMeter, StealMeter, waited_ns
from cachemark.model.protocol import Slice

_EMPTY_SLICES = 5


class CpuReading(msgspec.Struct, frozen=True):
    """CPU time that passed in a slice, and the wait for one; -1: not available."""

    worker_ns: int = UNKNOWN_NS
    server_ns: int = UNKNOWN_NS
    idle_ns: int = UNKNOWN_NS
    steal_ns: int = 0
    queued_ns: int = UNKNOWN_NS


class TurnCost(msgspec.Struct, frozen=True, kw_only=True):
    """Wall and CPU time of an empty slice of an arm's workers, the medians of a few."""

    wall_ns: int = 0
    cpu_ns: int = 0


class SliceMeters:
    """The clocks of all arms that were added: of the workers, of a server that runs here.

    An arm is any key. Each has two clocks, one behind the other.
    """

    def __init__(self) -> None:
        self._places: dict[Hashable, int] = {}
        self._clocks: list[CpuMeter] = []
        self._queues: dict[Hashable, QueueMeter] = {}
        self._steal = StealMeter()

    def close(self) -> None:
        """Close the source of the steal."""
        self._steal.close()

    def add(self, arm: Hashable, fleet: Fleet, server: RunningServer | None) -> None:
        """Read the clocks of an arm's processes from now on."""
        workers = [worker.pid for worker in fleet.workers]
        servers = server.pids if server else []
        place = self._places.setdefault(arm, len(self._clocks))
        self._clocks[place : place + 2] = [CpuMeter(workers), CpuMeter(servers)]
        self._queues[arm] = QueueMeter([*workers, *servers])

    def turn_cost(self, arm: Hashable, fleet: Fleet) -> TurnCost:
        """The cost of a slice beside its own length. Raises TrialError."""
        workers, costs = self._clocks[self._places[arm]], list[tuple[int, int]]()
        for _ in range(_EMPTY_SLICES):
            cpu_ns, began_ns = workers.read_ns(), time.monotonic_ns()
            fleet.slice(Slice(length_us=0))
            costs.append((time.monotonic_ns() - began_ns, workers.read_ns() - cpu_ns))
        walls, cpus = zip(*costs, strict=True)
        return TurnCost(wall_ns=int(median(walls)), cpu_ns=int(median(cpus)))

    def begin(self, arm: Hashable) -> Callable[[], CpuReading]:
        """Read the clocks before a slice of an arm; the result reads them after it.

        What could not be read counts as nothing for idle arms, and as not available for the arm.
        """
        own, queue = self._places[arm], self._queues[arm]
        queued, steal_ns, first = queue.read_ns(), self._steal.read_ns(), self._read()

        def end() -> CpuReading:
            last, stolen_ns = self._read(), self._steal.read_ns() - steal_ns
            queued_ns = waited_ns(queued, queue.read_ns())
            used = [
                b - a if min(a, b) >= 0 else UNKNOWN_NS for a, b in zip(first, last, strict=True)
            ]
            idle_ns = sum(max(0, ns) for at, ns in enumerate(used) if at not in (own, own + 1))
            return CpuReading(used[own], used[own + 1], idle_ns, stolen_ns, queued_ns)

        return end

    def _read(self) -> list[int]:
        return [clock.read_ns() for clock in self._clocks]
