"""The capacity of a server: the highest rate of each number of connections, and what ends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from cachemark.analysis.number_format import count_of, number
from cachemark.model.experiment import Experiment, Load
from cachemark.model.hosts import Hosts
from cachemark.model.objective import Objective
from cachemark.report.model import CapacityPoint, Section
from cachemark.report.searched_rates import FoundRate, rate_above


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """What was found for one client and server: a rate for each number of connections, ascending.

    `label` is what tells it from others; `hosts` is how many hosts have these connections.
    """

    label: str
    series: int | None
    hosts: int
    rates: list[tuple[int, FoundRate]]


def capacities(
    found_rates: Sequence[FoundRate],
    experiment: Experiment,
    hosts: Hosts | None,
    series: Mapping[str, int],
) -> list[Capacity]:
    """The searches whose loads differ only in their number of connections."""
    loads = {load.name: load for load in experiment.loads}
    alike: dict[tuple[str, str, str, Load], list[tuple[int, FoundRate]]] = {}
    count = 1
    for one in found_rates:
        load, cell = loads[one.cell.load], one.cell
        count = _hosts_of(load, hosts)
        rest = msgspec.structs.replace(load, name="load", connections=None, threads=1, processes=1)
        key = cell.client, cell.server, cell.workload, rest
        alike.setdefault(key, []).append((count * _connections(load), one))
    return [
        Capacity(
            label=f"{client} · {server} · {workload}",
            series=series.get(client) if len(alike) == len({key[0] for key in alike}) else None,
            hosts=count,
            rates=sorted(rates, key=lambda pair: pair[0]),
        )
        for (client, server, workload, _), rates in alike.items()
        if len({connections for connections, _ in rates}) == len(rates) > 1
    ]


def _connections(load: Load) -> int:
    """The connections of a load on one host."""
    return load.processes * (load.connections or load.threads)


def _hosts_of(load: Load, hosts: Hosts | None) -> int:
    if hosts is None:
        return 1
    return len(hosts.generators if load.measure else hosts.clients)


def sentence(capacity: Capacity, text: str, objective: Objective) -> str:
    """The capacity in a sentence; `text` is the objective as it was written."""
    connections, best = max(capacity.rates, key=lambda pair: pair[1].ends.best)
    if not best.ends.best:
        return f"{capacity.label}: no number of connections meets {text}."
    others = ", ".join(
        f"{number(one.ends.best) if one.ends.best else 'none'} at {each:,}"
        for each, one in capacity.rates
        if each != connections
    )
    place = f" of {count_of(capacity.hosts, 'host')}" if capacity.hosts > 1 else ""
    return (
        f"{capacity.label} holds {number(best.ends.best)} operations per second with {text} at "
        f"{connections:,} connections{place}; {rate_above(best, objective)}. Other numbers of "
        f"connections: {others}."
    )


def sections(measured: Sequence[Capacity], text: str, objective: Objective) -> list[Section]:
    """The table of all capacities, and the points of their curves; empty if there are none."""
    if not measured:
        return []
    return [
        Section(
            title=f"Capacity with {text}",
            topic="search",
            columns=["what", "connections", "highest rate", "what ends it"],
            rows=[
                [
                    one.label,
                    f"{connections:,}",
                    number(rate.ends.best) if rate.ends.best else "–",
                    rate_above(rate, objective).partition(";")[0],
                ]
                for one in measured
                for connections, rate in one.rates
            ],
            notes=["Connections are those of all processes, on all hosts that make the load."],
            unit=text,
            capacity_points=[
                CapacityPoint(
                    label=one.label,
                    connections=connections,
                    rate=rate.ends.best,
                    series=one.series,
                )
                for one in measured
                for connections, rate in one.rates
                if rate.ends.best
            ],
            prose=True,
        )
    ]
