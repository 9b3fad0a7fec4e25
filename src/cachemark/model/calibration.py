"""A client's calibration on a machine, as it is stored."""

from collections.abc import Iterable, Sequence

import msgspec

from cachemark.model.experiment import Load
from cachemark.model.outcome import HostNoise

# The largest part of the highest clean rate that a published figure may use.
HEADROOM = 0.7


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """The closed loop: response times in ns, None if there were too few operations.

    Reports print it beside results, and subtract nothing: percentiles cannot be subtracted.
    """

    ops_per_s: float
    p50_ns: int | None
    p99_ns: int | None
    p999_ns: int | None


class CalibrationStep(msgspec.Struct, frozen=True, kw_only=True):
    """One rate of the sweep: the client's own lag, and whether the rate is clean.

    A rate is clean if the 95 % interval of the share of late operations shows that the p99.9 is
    within the budget. It is not `judged` if that interval leaves this open.
    """

    rate: float
    lag_p999_ns: int | None
    achieved: float
    clean: bool
    judged: bool = True
    why: str = ""


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """The calibration of a client on a machine: one JSON line, never rewritten.

    `against` is the server: `null` answers every request with the same bytes; `embedded` is the
    engine's server, for clients that send more than gets. `clean_rate` is the highest rate (ops/s)
    whose send lag at p99.9 is within the budget; None if there is no such rate, or if the worker
    plays no open loop.
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
    steps: list[CalibrationStep] = []
    noise: HostNoise | None = None
    why: str = ""

    def belongs_to(self, load: Load) -> bool:
        """Whether the calibration has the same callers as one process of a load."""
        shape = (load.threads, load.connections or load.threads, load.depth)
        return shape == (self.threads, self.connections, self.depth)


def headroom(calibration: Calibration, load: Load) -> float | None:
    """A load's rate for each process, as a part of the highest clean rate.

    None if there is no such rate, or if it was measured with other callers.
    """
    if load.rate is None or calibration.clean_rate is None or not calibration.belongs_to(load):
        return None
    return load.rate / load.processes / calibration.clean_rate


def latest_calibrations(
    calibrations: Sequence[Calibration], host: str, clients: Iterable[str]
) -> list[Calibration]:
    """The latest for each client and number of callers on a host, in the order of `clients`."""
    wanted = list(dict.fromkeys(clients))
    newest = {
        (each.client, each.threads, each.connections, each.depth): each
        for each in calibrations
        if each.host == host
    }
    return [each for client in wanted for each in newest.values() if each.client == client]
