"""Lines for each client: over a numeric factor, over the rates of a search, over the window."""

from typing import Any

import msgspec
import pytest

from cachemark.model.experiment import Load, Values, Workload
from cachemark.model.outcome import Outcome, Sample
from cachemark.report.build import build
from cachemark.report.model import Report
from cachemark.report.plots import plots
from cachemark.report.plots.images import svg
from cachemark.report.plots.line_chart import ChartLine, ChartPoint, line_chart
from cachemark.report.plots.over_factor import over_factor
from cachemark.report.plots.palette import line_style
from cachemark.report.plots.timeline import hit_ratio
from tests.builders.full_report import LOADS, SERVERS, samples
from tests.builders.full_report import report as full_report
from tests.builders.outcomes import at, experiment, header, measured, numbered
from tests.builders.search_outcomes import at_rate, closed, search_experiment

STARTED_AT = "2026-01-02T03:04:05.000+00:00"


def at_load(client: str, load: Load, rate: int, block: int) -> Outcome:
    made = at(measured(client, block, rate), load=load.name)
    return msgspec.structs.replace(made, load=load)


def test_each_client_has_a_line_over_the_number_of_threads() -> None:
    found = over_factor(full_report(), 680)
    assert [plot.title for plot in found] == ["Throughput over threads"] * len(SERVERS)
    table = found[0].table
    assert table.titles == ["client", *[str(load.threads) for load in LOADS]]
    assert {row[0] for row in table.rows} == {"native", "python/fast", "python/slow"}
    assert all("<svg" in svg(plot.spec) for plot in found)


@pytest.mark.parametrize("factor", ["connections", "depth", "processes"])
def test_other_factors_of_a_load_have_plots_too(factor: str) -> None:
    loads = [msgspec.convert({"name": f"load-{n}", factor: n}, Load) for n in (1, 2, 16)]
    planned = msgspec.structs.replace(experiment(["a", "b"], 2), loads=loads)
    outcomes = [
        at_load(client, load, 1000 + 100 * n, block)
        for block in range(2)
        for client in ("a", "b")
        for n, load in enumerate(loads)
    ]
    (plot,) = over_factor(build(header(planned), numbered(outcomes)), 680)
    assert plot.title == f"Throughput over {factor}"
    assert plot.table.titles == ["client", "1", "2", "16"]


def test_workloads_that_differ_in_value_size_form_one_line() -> None:
    sizes = ("100", "1k", "64k")
    works = [Workload(name=f"of-{s}", mix={"get": 1}, values=Values(size=s)) for s in sizes]
    planned = msgspec.structs.replace(experiment(["a"], 2), workloads=works)
    outcomes = [
        msgspec.structs.replace(at(measured("a", block, 1000), workload=work.name), workload=work)
        for block in range(2)
        for work in works
    ]
    (plot,) = over_factor(build(header(planned), numbered(outcomes)), 680)
    assert plot.table.titles == ["client", "100", "1,024", "65,536"]
    assert plot.subtitle == "one · embedded"


def test_two_factors_that_change_together_are_no_line() -> None:
    loads = [Load(name="small", threads=1), Load(name="large", threads=4, depth=8)]
    planned = msgspec.structs.replace(experiment(["a"], 2), loads=loads)
    outcomes = [at_load("a", load, 1000, block) for block in range(2) for load in loads]
    assert over_factor(build(header(planned), numbered(outcomes)), 680) == []


def searched() -> Report:
    fast, slow = 400_000, 2_000_000
    steps = [
        made
        for client, limit in (("a", 1000), ("b", 1500))
        for made in (
            closed(client, 4000),
            *[at_rate(client, rate, fast if rate <= limit else slow) for rate in (1000, 1500)],
            at_rate(client, 2000, slow, late_ns=1_900_000),
        )
    ]
    return build(header(search_experiment()), numbered(steps))


def test_a_search_has_a_line_by_rate_for_each_client() -> None:
    made = searched()
    (plot,) = [plot for found in plots(made, 680).sections for plot in found]
    assert plot.title == "p99 over the offered rate"
    # The rate at which the client itself was late says nothing about the server.
    assert sorted(plot.table.rows) == [
        ["a", "1.00 k", "400 µs"],
        ["a", "1.50 k", "2.00 ms"],
        ["b", "1.00 k", "400 µs"],
        ["b", "1.50 k", "400 µs"],
    ]
    series = {point.label: point.series for part in made.sections for point in part.rate_points}
    assert series == {"a": 0, "b": 1}
    assert "<svg" in svg(plot.spec)


def window(counts: list[tuple[int, int]], *, begin: int = 0) -> Outcome:
    """A trial with a sample a second: hits and misses so far."""
    readings: list[Sample] = [
        msgspec.structs.replace(sample, stats={"get_hits": hits, "get_misses": misses})
        for sample, (hits, misses) in zip(samples(1000, len(counts)), counts, strict=True)
    ]
    return msgspec.structs.replace(
        measured("a", 0, 1000),
        measure_started_at=STARTED_AT,
        samples=readings,
        stats_before={"get_hits": str(begin), "get_misses": "0"},
    )


def test_the_hit_ratio_of_a_second_has_its_own_reads() -> None:
    # A cold cache: nothing is found in the first second, and everything in the third.
    made = build(header(experiment(["a"], 1)), [window([(5, 10), (11, 14), (21, 14)], begin=5)])
    (group,) = made.groups
    assert [point.hit_ratio for point in made.trials[0].timeline] == [0.0, 0.6, 1.0]
    plot = hit_ratio(group, made.trials, 680)
    assert plot is not None
    assert plot.table.rows == [["a", "0.0 %", "60.0 %", "100.0 %"]]
    assert "<svg" in svg(plot.spec)


def test_where_everything_is_found_there_is_no_plot_of_hits() -> None:
    made = build(header(experiment(["a"], 1)), [window([(5, 0), (11, 0), (21, 0)])])
    assert hit_ratio(made.groups[0], made.trials, 680) is None


def test_an_interval_leaves_room_for_the_lines() -> None:
    marks = [ChartPoint(x=x, y=1000, low=1, high=1e9, description="wide") for x in (1, 2)]
    spec = line_chart([ChartLine(label="a/long-name", marks=marks)], 680, 240, x={}, y_title="ns")
    low, high = spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert (low, high) == (500, 2000)


def test_names_of_lines_are_whole() -> None:
    marks = [ChartPoint(x=x, y=1000, description="one") for x in (1, 2)]
    name = "python/python-memcached"
    spec = line_chart([ChartLine(label=name, marks=marks)], 680, 240, x={}, y_title="ns")
    assert name in [layer["mark"].get("text") for layer in spec["layer"]]


def label_colours(spec: object) -> dict[str, str]:
    """The colour of each text, such as the name of a line."""
    found: dict[str, str] = {}
    if isinstance(spec, dict):
        mark = spec.get("mark")
        # The names of bars are at their right ends, in one colour.
        if isinstance(mark, dict) and mark.get("type") == "text" and mark["align"] == "left":
            found[str(mark.get("text"))] = mark["color"]
        for item in spec.values():
            found |= label_colours(item)
    elif isinstance(spec, list):
        for item in spec:
            found |= label_colours(item)
    return found


@pytest.mark.parametrize("count", [3, 9])
def test_a_client_has_one_colour_in_all_plots(count: int) -> None:
    """Also where a client is missing in some, and for more clients than there are colours."""
    clients = ["native", *(f"client-{number}" for number in range(count))]
    outcomes = [
        measured(client, block, 1000 + (number * 37) % 100 + block, index=block * 20 + number)
        for block in range(4)
        for number, client in enumerate(clients)
        if not (client == "client-0" and block > 0)
    ]
    made = build(header(experiment(clients, 4)), outcomes)
    (group,) = made.groups
    drawn = [plot.spec for plot in plots(made, 680).groups[0]]
    lines = [found for found in map(label_colours, drawn) if set(found) & set(clients)]
    assert len(lines) > 1
    for client in clients:
        assert len({found[client] for found in lines if client in found}) == 1, client
    shown = [line_style(row.series) for row in group.rows if row.series is not None]
    assert len({(style.role, tuple(style.dash)) for style in shown}) == count


def marks_of(spec: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    drawn = [layer["mark"] for layer in spec["layer"] if isinstance(layer["mark"], dict)]
    return [mark for mark in drawn if mark["type"] == kind]


def test_no_two_of_many_lines_look_alike() -> None:
    """The grey ones neither; and before each of the names is the dash of its line."""
    marks = [ChartPoint(x=1.0, y=1.0), ChartPoint(x=2.0, y=2.0)]
    own = [ChartLine(label=f"c{number}", marks=marks, series=number) for number in range(20)]
    grey = [ChartLine(label=f"native{option}", marks=marks) for option in ("", "?a=1", "?b=1")]
    for width in (680, 336):
        spec = line_chart([*grey, *own], width, 240, x={}, y_title="ns")
        styles = [(of["color"], tuple(of["strokeDash"])) for of in marks_of(spec, "line")]
        assert len(set(styles)) == len(styles) == 23
        samples = [(of["color"], tuple(of["strokeDash"])) for of in marks_of(spec, "rule")]
        assert samples == styles[:16]
        assert [of["text"] for of in marks_of(spec, "text")][-1] == "c12"
    nearly_grey = {line_style(number).dash[0] for number in (5, 11)}
    assert nearly_grey.isdisjoint(line_style(number, grey=True).dash[0] for number in range(2))
