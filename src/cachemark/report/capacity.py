"""The capacity of a server: the highest rate of each number of connections, and what ends it.

The connections can come from several hosts, and their number can be part of the plan.
"""

from collections.abc import Mapping, Sequence

import msgspec

from cachemark.analysis.number_format import count_of, number
from cachemark.model.experiment import Experiment, Load
from cachemark.model.hosts import Hosts
from cachemark.model.search_steps import Objective, besides_callers
from cachemark.report.model import CapacityPoint, Section
from cachemark.report.searched_rates import FoundRate, rate_above


class CapacityRate(msgspec.Struct, frozen=True, kw_only=True):
    """The highest rate with a number of connections, all `hosts` together."""

    hosts: int
    connections: int
    found: FoundRate


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """The rates of one client and server, by the number of connections, ascending.

    `label` is what tells it from others.
    """

    label: str
    series: int | None
    rates: list[CapacityRate]


def capacities(
    found_rates: Sequence[FoundRate],
    experiment: Experiment,
    hosts: Hosts | None,
    series: Mapping[str, int],
) -> list[Capacity]:
    """The searches whose loads differ only in their numbers of connections and hosts."""
    loads = {load.name: load for load in experiment.loads}
    alike: dict[tuple[str, str, str, Load], list[CapacityRate]] = {}
    for one in found_rates:
        load, cell = loads[(one.typical.after or one.cell).load], one.cell
        count = len(hosts.makers_of(load)) if hosts else 1
        each = load.processes * (load.connections or one.typical.threads or load.threads)
        rate = CapacityRate(hosts=count, connections=count * each, found=one)
        key = (cell.client, cell.server, cell.workload, besides_callers(load))
        alike.setdefault(key, []).append(rate)
    lines = [
        (client, f"{client} · {server} · {workload}{label}", rates)
        for (client, server, workload, _), all_rates in alike.items()
        for label, rates in _lines(all_rates)
    ]
    return [
        Capacity(
            label=label,
            series=series.get(client) if len(lines) == len({line[0] for line in lines}) else None,
            rates=sorted(rates, key=lambda rate: rate.connections),
        )
        for client, label, rates in lines
        if len({rate.connections for rate in rates}) == len(rates) > 1
    ]


def _lines(rates: Sequence[CapacityRate]) -> list[tuple[str, list[CapacityRate]]]:
    """One line; where a number of hosts has several numbers of connections, a line for each."""
    counts = sorted({rate.hosts for rate in rates})
    if len(counts) in (1, len(rates)):
        return [("", list(rates))]
    return [
        (f" · {count_of(count, 'host')}", [rate for rate in rates if rate.hosts == count])
        for count in counts
    ]


def sentence(capacity: Capacity, text: str, objective: Objective) -> str:
    """The capacity in a sentence; `text` is the objective as it was written."""
    best = max(capacity.rates, key=lambda rate: rate.found.ends.best)
    if not best.found.ends.best:
        return f"{capacity.label}: no rate with {text} was found at any number of connections."
    one_count = len({rate.hosts for rate in capacity.rates}) == 1
    others = ", ".join(
        f"{_best(rate, 'none')} at {rate.connections:,}" + ("" if one_count else _place(rate))
        for rate in capacity.rates
        if rate is not best
    )
    place = "" if one_count and best.hosts == 1 else _place(best)
    return (
        f"{capacity.label} holds {_best(best)} operations per second with {text} at "
        f"{best.connections:,} connections{place}; {rate_above(best.found, objective)}. Other "
        f"numbers of connections: {others}."
    )


def _best(rate: CapacityRate, none: str = "–") -> str:
    return number(rate.found.ends.best) if rate.found.ends.best else none


def _place(rate: CapacityRate) -> str:
    return f" of {count_of(rate.hosts, 'host')}"


def sections(measured: Sequence[Capacity], text: str, objective: Objective) -> list[Section]:
    """The table of all capacities, and the points of their curves; empty if there are none."""
    if not measured:
        return []
    return [
        Section(
            title=f"Capacity with {text}",
            topic="search",
            columns=["what", "hosts", "connections", "highest rate", "what ends it"],
            rows=[
                [
                    one.label,
                    str(rate.hosts),
                    f"{rate.connections:,}",
                    _best(rate),
                    rate_above(rate.found, objective).partition(";")[0],
                ]
                for one in measured
                for rate in one.rates
            ],
            notes=["The hosts make the load; the connections belong to all of their processes."],
            unit=text,
            capacity_points=[
                CapacityPoint(
                    label=one.label,
                    connections=rate.connections,
                    rate=rate.found.ends.best,
                    series=one.series,
                )
                for one in measured
                for rate in one.rates
                if rate.found.ends.best
            ],
            prose=True,
        )
    ]
