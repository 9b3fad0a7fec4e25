"""A capacity plan: searches with several numbers of connections make a sentence and a curve."""

from __future__ import annotations

import msgspec
import pytest

from cachemark.analysis.rate_search import Play, Search, bounds
from cachemark.model.experiment import Load, Measure
from cachemark.model.hosts import CoordinatorPlace, Host, Hosts, Role
from cachemark.model.objective import parse_objective
from cachemark.model.outcome import Cell
from cachemark.report.capacity import Capacity, capacities, sections, sentence
from cachemark.report.plots.capacity import capacity
from cachemark.report.searched_rates import found_rates
from tests.builders.search_outcomes import search_experiment

P99 = parse_objective("p99<1ms", "search")
FOUND = {16: 60_000.0, 64: 85_000.0, 256: 70_000.0}


def load(connections: int, measure: Measure | None = None) -> Load:
    """A load of two processes."""
    return Load(
        name=f"open-{connections}-connections",
        schedule="poisson",
        processes=2,
        connections=connections // 2,
        measure=measure,
    )


def searched(connections: int, limit: float) -> Search:
    """A whole search: all rates up to a limit meet the objective."""
    cell = Cell(client="a", server="embedded", workload="mixed", load=load(connections).name)
    search = Search(cell=cell, block=0, closed=[Play(rate=0, ops_per_s=100_000)])
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
    experiment = msgspec.structs.replace(
        search_experiment(), loads=[load(each, measure) for each in FOUND]
    )
    found = found_rates([searched(each, rate) for each, rate in FOUND.items()])
    return capacities(found, experiment, hosts, {"a": 0})


def test_the_most_is_named_with_what_ends_it_and_the_other_numbers() -> None:
    (found,) = planned()
    assert sentence(found, "p99<1ms", P99) == (
        "a · embedded · mixed holds 84.4 k operations per second with p99<1ms at 64 connections; "
        "at 86.0 k: p99 1.30 ms. Other numbers of connections: 59.4 k at 16, 68.8 k at 256."
    )


def test_the_curve_goes_up_in_connections() -> None:
    (section,) = sections(planned(), "p99<1ms", P99)
    assert [row[1:3] for row in section.rows] == [
        ["16", "59.4 k"], ["64", "84.4 k"], ["256", "68.8 k"]
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
    roles: list[list[Role]] = [["server"], ["client"], ["client"], ["load"], ["load"], ["load"]]
    hosts = Hosts(
        coordinator=CoordinatorPlace(address="127.0.0.1", port=0),
        hosts=[Host(name=f"h{n}", roles=of, address="127.0.0.1") for n, of in enumerate(roles)],
    )
    (found,) = planned(measure, hosts)
    assert [each for each, _ in found.rates] == connections
    assert f" connections of {found.hosts} hosts; " in sentence(found, "p99<1ms", P99)


def test_one_number_of_connections_is_no_plan() -> None:
    experiment = msgspec.structs.replace(search_experiment(), loads=[load(16)])
    found = found_rates([searched(16, 60_000)])
    assert capacities(found, experiment, None, {}) == []
    assert sections([], "p99<1ms", P99) == []
