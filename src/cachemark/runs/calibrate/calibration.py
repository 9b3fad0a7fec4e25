"""A client's calibration on a machine, as it is kept."""

from __future__ import annotations

import msgspec

from cachemark.model.experiment import Load
from cachemark.model.outcome import HostNoise

# A published figure stays this far below the highest rate at which the client itself is on time.
HEADROOM = 0.7


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """A closed loop against the server: response times in ns, absent where too few were measured.

    It is printed beside results and never subtracted: percentiles do not subtract.
    """

    ops_per_s: float
    p50_ns: int | None
    p99_ns: int | None
    p999_ns: int | None


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One rate of the sweep: how late the client was by itself, and whether that is clean."""

    rate: float
    lag_p999_ns: int | None
    achieved: float
    clean: bool
    why: str = ""


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """What a client came to on a machine at a time; one JSON line, never rewritten.

    `against`: `null` answers every request with the same bytes; `embedded` is the engine's server,
    for clients that say more than gets. `clean_rate` is the highest rate (ops/s) whose send lag at
    p99.9 stayed within the budget; None where none did, or the worker plays no open loop.
    """

    at: str
    host: str
    cpu_model: str
    cpus: int
    cachemark: str
    client: str
    library_version: str
    against: str
    threads: int
    connections: int
    depth: int
    budget_ns: int
    floor: Floor | None = None
    clean_rate: float | None = None
    steps: list[Step] = []
    noise: HostNoise | None = None
    why: str = ""

    def belongs_to(self, load: Load) -> bool:
        """Whether it was made with a load's callers, of one process."""
        shape = (load.threads, load.connections or load.threads, load.depth)
        return shape == (self.threads, self.connections, self.depth)


def headroom(calibration: Calibration, load: Load) -> float | None:
    """The part of the highest clean rate that a load asks of each of its processes.

    None where there is no such rate, or it is of other callers.
    """
    if load.rate is None or calibration.clean_rate is None or not calibration.belongs_to(load):
        return None
    return load.rate / load.processes / calibration.clean_rate
