"""A capacity plan: searches with several numbers of connections make a sentence and a curve."""

from collections.abc import Mapping

import msgspec
import pytest

from cachemark.analysis.rate_search import Play, Search, bounds
from cachemark.model.experiment import Load, Measure
from cachemark.model.hosts import CoordinatorPlace, Host, Hosts, Role
from cachemark.model.outcome import Cell
from cachemark.model.search_steps import parse_objective
from cachemark.report.capacity import Capacity, capacities, sections, sentence
from cachemark.report.plots.searches import capacity
from cachemark.report.searched_rates import found_rates
from tests.builders.search_outcomes import search_experiment

P99 = parse_objective("p99<1ms", "search")
FOUND = {16: 60_000.0, 64: 85_000.0, 256: 70_000.0}


def load(connections: int, measure: Measure | None = None, hosts: int | None = None) -> Load:
    """A load of two processes, on this number of hosts."""
    return Load(
        name=f"open-{connections}-connections" + (f"-{hosts}-hosts" if hosts else ""),
        hosts=hosts,
        schedule="poisson",
        processes=2,
        connections=connections // 2,
        measure=measure,
    )


def searched(of: Load, limit: float) -> Search:
    """A whole search: all rates up to a limit meet the objective."""
    cell = Cell(client="a", server="embedded", workload="mixed", load=of.name)
    search = Search(cell=cell, block=0, closed=[Play(rate=0, answered_per_s=100_000)])
    while (rate := bounds(search).next_rate) is not None:
        play = (
            Play(rate=rate, percentile_ns=900_000)
            if rate <= limit
            else Play(rate=rate, percentile_ns=1_300_000, misses_by="p99")
        )
        search = msgspec.structs.replace(search, plays=[*search.plays, play])
    return search


def planned(measure: Measure | None = None, hosts: Hosts | None = None) -> list[Capacity]:
    """The capacities of three searches."""
    return planned_with({load(each, measure): rate for each, rate in FOUND.items()}, hosts)


def planned_with(limits: Mapping[Load, float], hosts: Hosts | None) -> list[Capacity]:
    """The capacities of searches; each finds the limit of its load."""
    experiment = msgspec.structs.replace(search_experiment(), loads=list(limits))
    found = found_rates([searched(of, limit) for of, limit in limits.items()])
    return capacities(found, experiment, hosts, {"a": 0})


def six_hosts() -> Hosts:
    """A server's host, two hosts of clients, and three that make the load."""
    roles: list[list[Role]] = [["server"], ["client"], ["client"], ["load"], ["load"], ["load"]]
    return Hosts(
        coordinator=CoordinatorPlace(address="127.0.0.1", port=0),
        hosts=[Host(name=f"h{n}", roles=of, address="127.0.0.1") for n, of in enumerate(roles)],
    )


def test_the_maximum_is_named_with_its_limit_and_other_numbers() -> None:
    (found,) = planned()
    assert sentence(found, "p99<1ms", P99) == (
        "a · embedded · mixed holds 84.4 k operations per second with p99<1ms at 64 connections; "
        "at 86.0 k: p99 1.30 ms. Other numbers of connections: 59.4 k at 16, 68.8 k at 256."
    )


def test_the_curve_goes_up_in_connections() -> None:
    (section,) = sections(planned(), "p99<1ms", P99)
    assert [row[1:4] for row in section.rows] == [
        ["1", "16", "59.4 k"], ["1", "64", "84.4 k"], ["1", "256", "68.8 k"]
    ]  # fmt: skip
    (plot,) = capacity(section, 860)
    assert plot.alt.endswith("from 59.4 k/s at 16 to 68.8 k/s at 256.")
    assert len(plot.table.rows) == 3


@pytest.mark.parametrize(
    ("measure", "connections"), [(None, [32, 128, 512]), (Measure(), [48, 192, 768])]
)
def test_connections_are_those_of_all_hosts_that_make_the_load(
    measure: Measure | None, connections: list[int]
) -> None:
    (found,) = planned(measure, six_hosts())
    assert [rate.connections for rate in found.rates] == connections
    (count,) = {rate.hosts for rate in found.rates}
    assert f" connections of {count} hosts; " in sentence(found, "p99<1ms", P99)


def test_the_number_of_hosts_can_be_the_plan() -> None:
    limits = {load(16, hosts=1): 60_000.0, load(16, hosts=2): 85_000.0}
    (found,) = planned_with(limits, six_hosts())
    assert sentence(found, "p99<1ms", P99) == (
        "a · embedded · mixed holds 84.4 k operations per second with p99<1ms at 32 connections "
        "of 2 hosts; at 86.0 k: p99 1.30 ms. Other numbers of connections: 59.4 k at 16 of 1 host."
    )
    (section,) = sections([found], "p99<1ms", P99)
    assert [row[1:4] for row in section.rows] == [["1", "16", "59.4 k"], ["2", "32", "84.4 k"]]


def test_each_number_of_hosts_is_a_curve_over_its_connections() -> None:
    limits = {
        load(connections, Measure(), hosts=hosts): 1000.0 * connections * hosts
        for hosts in (1, 3)
        for connections in (16, 32)
    }
    one, three = planned_with(limits, six_hosts())
    assert (one.label, three.label) == (
        "a · embedded · mixed · 1 host",
        "a · embedded · mixed · 3 hosts",
    )
    assert [rate.connections for rate in one.rates] == [16, 32]
    assert [rate.connections for rate in three.rates] == [48, 96]
    # No colour of a client: both lines are of the same one.
    assert (one.series, three.series) == (None, None)
    assert " at 96 connections of 3 hosts; " in sentence(three, "p99<1ms", P99)


def test_one_number_of_connections_is_no_plan() -> None:
    experiment = msgspec.structs.replace(search_experiment(), loads=[load(16)])
    found = found_rates([searched(load(16), 60_000)])
    assert capacities(found, experiment, None, {}) == []
    assert sections([], "p99<1ms", P99) == []
