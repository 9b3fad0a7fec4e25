"""CPU time of one system call of each kind, as the engine measures it where the client plays."""

import msgspec

from cachemark.host.engine_output import engine_output
from cachemark.host.process import parse_cpus
from cachemark.model.counts import UnitCosts


class _Measured(msgspec.Struct, frozen=True):
    cost_ns: dict[str, float]


def measured_unit_costs(cpus: str, peer_cpus: str) -> UnitCosts:
    """Measure on the first of these CPUs, with a peer on its own; empty: any. Raises UsageError."""
    command = ["unit-costs"]
    for option, where in (("--cpu", cpus), ("--peer-cpu", peer_cpus)):
        if where:
            command += [option, str(min(parse_cpus(where)))]
    text = engine_output(command, "build the engine again: make setup")
    costs = msgspec.json.decode(text, type=_Measured).cost_ns
    return UnitCosts(**{name: ns / 1e3 for name, ns in costs.items()})
