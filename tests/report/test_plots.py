"""The parts of plots: factors, timelines, axes, and the picture for a README."""

import json
import struct
from pathlib import Path

import msgspec
import pytest

from cachemark.analysis import number_format
from cachemark.analysis.statistics import Interval
from cachemark.analysis.statistics.decision import Answer
from cachemark.model.experiment import Load
from cachemark.model.outcome import Sample
from cachemark.report import conclusions
from cachemark.report.model import ClientRow, Report, TimelinePoint
from cachemark.report.plots import Style, plot_files, plots, summary_png
from cachemark.report.plots.bar_chart import BarItem, axis_end, bar_chart, clipped_note
from cachemark.report.plots.effects import factors
from cachemark.report.plots.images import svg
from cachemark.report.plots.layout import SI_LABEL
from cachemark.report.plots.overview import server_groups
from cachemark.report.plots.palette import ROLES, identity
from cachemark.report.plots.summary_picture import summary_picture, ticks, title_lines
from cachemark.report.plots.timeline import rate
from cachemark.report.tables import share_text
from cachemark.report.trials import trial_rows
from tests.builders.full_report import LOADS, SERVERS, report, samples
from tests.builders.outcomes import measured

EXAMPLE = "2026-01-02T03:04:05.000+00:00"


@pytest.fixture(scope="module")
def made() -> Report:
    return report()


def test_a_factor_compares_cells_that_differ_in_it_alone(made: Report) -> None:
    found = {factor.name: factor for factor in factors(made)}
    assert set(found) == {"server", "threads"}
    server, threads = found["server"], found["threads"]
    assert (server.base, [level.name for level in server.levels]) == ("embedded", [*SERVERS][1:])
    assert server.levels[0].ratio == pytest.approx(1.2, rel=0.02)
    assert threads.levels[0].ratio == pytest.approx(1.5, rel=0.02)
    # Three libraries at each of the other factor's two levels; `null` is no choice.
    assert len(threads.levels[0].pairs) == 6


def test_levels_that_come_with_another_factor_are_no_pair(made: Report) -> None:
    loads = [LOADS[0], Load(name="four", threads=4, wire="binary")]
    experiment = msgspec.structs.replace(made.header.experiment, loads=loads)
    header = msgspec.structs.replace(made.header, experiment=experiment)
    confounded = msgspec.structs.replace(made, header=header)
    assert [factor.name for factor in factors(confounded)] == ["server"]


def test_thinking_callers_are_no_pair_of_those_without_thinking(made: Report) -> None:
    """Else the rate of four threads would be held against that of one which mostly waits."""
    loads = [*LOADS, Load(name="thinking", threads=1, think="1ms")]
    experiment = msgspec.structs.replace(made.header.experiment, loads=loads)
    header = msgspec.structs.replace(made.header, experiment=experiment)
    slow = [
        msgspec.structs.replace(group, load="thinking", rows=[_tenth(row) for row in group.rows])
        for group in made.groups
        if group.load == "one"
    ]
    more = msgspec.structs.replace(made, header=header, groups=[*made.groups, *slow])
    (threads,) = [factor for factor in factors(more) if factor.name == "threads"]
    assert threads.levels[0].ratio == pytest.approx(1.5, rel=0.02)


def _tenth(row: ClientRow) -> ClientRow:
    """The same client at a tenth of its rate."""
    total = row.summary.total
    assert total is not None
    rate = Interval(value=total.rate.value / 10)
    summary = msgspec.structs.replace(row.summary, total=msgspec.structs.replace(total, rate=rate))
    return msgspec.structs.replace(row, summary=summary)


def timeline(given: list[Sample]) -> list[tuple[int, float | None]]:
    outcome = msgspec.structs.replace(
        measured("python/fast", 0, 1000), measure_started_at=EXAMPLE, samples=given
    )
    (row,) = trial_rows([outcome])
    return [(moment.second, moment.ops_per_s) for moment in row.timeline]


def test_a_course_has_a_rate_for_each_second() -> None:
    assert timeline(samples(1000, 3)) == [(1, 1000.0), (2, 1000.0), (3, 1000.0)]


def test_a_second_without_a_workers_count_is_filled_in_proportion() -> None:
    one, two, three = samples(1000, 3)
    silent = msgspec.structs.replace(two, ops=one.ops, ops_unix_ns=one.ops_unix_ns)
    assert timeline([one, silent, three]) == [(1, 1000.0), (2, 1000.0), (3, 1000.0)]


def test_what_was_never_told_is_absent() -> None:
    mute = [msgspec.structs.replace(s, ops=None, ops_unix_ns=None) for s in samples(1000, 2)]
    assert timeline(mute) == [(1, None), (2, None)]


def test_a_sample_belongs_to_the_second_that_took_it() -> None:
    """A server that stood still was not asked in between; what follows keeps its place."""
    one, _, _, four, five = samples(1000, 5)
    outcome = msgspec.structs.replace(
        measured("python/fast", 0, 1000), measure_started_at=EXAMPLE, samples=[one, four, five]
    )
    (row,) = trial_rows([outcome])
    told = {moment.second: (moment.server_cpus, moment.server_rss_bytes) for moment in row.timeline}
    assert told == {
        1: (None, 2 * 10**6),
        2: (None, None),
        3: (None, None),
        4: (None, 5 * 10**6),
        5: (0.5, 6 * 10**6),
    }


def test_a_second_that_one_client_lacks_moves_no_other(made: Report) -> None:
    (group,) = [g for g in made.groups if (g.server, g.load) == (next(iter(SERVERS)), "one")]
    gone = [
        msgspec.structs.replace(
            trial, timeline=[_without_rate(moment, 2) for moment in trial.timeline]
        )
        if trial.cell.client == "python/fast"
        else trial
        for trial in made.trials
    ]
    drawn = rate(group, gone, 800)
    assert drawn is not None
    assert drawn.table.titles == ["client", "1 s", "2 s", "3 s", "4 s"]
    fast = next(row for row in drawn.table.rows if row[0] == "python/fast")
    assert fast[2] == "–"
    assert "–" not in (fast[1], fast[3], fast[4])


def _without_rate(moment: TimelinePoint, second: int) -> TimelinePoint:
    return msgspec.structs.replace(moment, ops_per_s=None) if moment.second == second else moment


def item(value: float, high: float) -> BarItem:
    of = Interval(value=value, low=1, high=high)
    return BarItem(label="a", role="first", of=of, figure="", description="")


def test_an_interval_does_not_squeeze_the_bars() -> None:
    wide = [item(100, 1e6), item(50, 60)]
    assert axis_end(wide) == pytest.approx(163.2)
    assert clipped_note(wide)
    narrow = [item(100, 110)]
    assert axis_end(narrow) == pytest.approx(112.2)
    assert not clipped_note(narrow)


def test_names_that_are_too_long_keep_both_their_ends() -> None:
    name = "php/apcu?entries_hint=1048576&shm_size=512M"
    one = msgspec.structs.replace(item(1, 1), label=name)
    drawn = svg(bar_chart([one], 520, axis="", labels="datum.value"))
    assert "php/apcu?" in drawn
    assert "512M" in drawn
    assert "…" in drawn


@pytest.mark.parametrize("last", [0.3, 1, 9.7, 34_000, 99_999, 1e9])
def test_an_axis_has_two_to_six_round_ticks(last: float) -> None:
    found = ticks(last)
    assert found[0] == 0
    assert found[-1] <= last
    assert 2 <= len(found) <= 6


def test_the_widest_intervals_are_said_to_be_wide() -> None:
    of = Interval(value=2.0, low=1e-6, high=1e6)
    assert number_format.interval(of, "{:.2f}") == "2.00 (<0.20–>20.00)"
    assert number_format.rate_with_error(of) == "2.00 ±>100 %"


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(80.0, 125.0, "±25.0 %"), (80.0, 104.0, "−20/+4.0 %"), (25.0, 144.0, "−75/+44 %")],
)
def test_an_interval_with_unlike_ends_shows_both(low: float, high: float, shown: str) -> None:
    of = Interval(value=100.0, low=low, high=high)
    assert number_format.time_with_error(of) == f"100 ns {shown}"


def test_the_answer_is_one_sentence(made: Report) -> None:
    said = conclusions.one_sentence(made)
    assert said.startswith("python/fast is first in all 4 comparisons")
    assert said.endswith("settled in every one.")
    one = msgspec.structs.replace(made, groups=made.groups[:1], answers=made.answers[:1])
    assert conclusions.one_sentence(one) == made.answers[0]


@pytest.mark.parametrize(("times", "apart"), [(0.1, []), (0.4, ["get · four · in the process"])])
def test_caches_in_the_process_never_leave_slivers_of_the_others(
    times: float, apart: list[str]
) -> None:
    one = report({"memcached": 0.02, "none": times})
    works = [work for work in server_groups(one) if work.groups[0].load == "four"]
    assert [work.title for work in works] == ["get · four", *apart]
    assert [[group.server for group in work.groups] for work in works] == (
        [["memcached"], ["none"]] if apart else [["memcached", "none"]]
    )
    names = [plot.name for plot in plots(one, 520).every()]
    assert len(names) == len(set(names))


def test_every_plot_can_be_drawn_and_has_words(made: Report) -> None:
    for width in (336, 520):
        found = plots(made, width).every()
        assert len({plot.name for plot in found}) == len(found) > 20
        for plot in found:
            assert plot.alt
            assert plot.table.rows
            assert f'width="{width}"' in svg(plot.spec)


def test_a_plot_is_a_file_in_each_form(made: Report) -> None:
    small = msgspec.structs.replace(made, groups=made.groups[:1], sections=[])
    png = dict(plot_files(small, "png"))
    assert (
        set(png) == set(dict(plot_files(small, "svg"))) == set(dict(plot_files(small, "vega-lite")))
    )
    for content in png.values():
        assert content.startswith(b"\x89PNG")


def test_a_title_uses_as_many_lines_as_it_needs() -> None:
    assert title_lines("mixed · 1-thread", 200) == ["mixed · 1-thread"]
    title = "set-get · text-blocking-32-threads · memcached"
    assert title_lines(title, 190) == ["set-get", "text-blocking-32-threads", "memcached"]
    assert title_lines("get · " + "very-" * 9 + "long", 100)[1].startswith("very…")


def test_the_picture_fits_a_readme(made: Report, tmp_path: Path) -> None:
    content = summary_png(made, conclusions.one_sentence(made))
    (tmp_path / "picture.png").write_bytes(content)
    width, height = struct.unpack(">II", content[16:24])
    assert width == 2 * 860
    assert height < 2 * 860
    assert len(content) < 150_000


def test_each_panel_has_its_fastest_on_top_and_ratios(made: Report) -> None:
    groups = [group for group in made.groups if len(group.rows) > 1]
    assert len(groups) > 1
    for group in groups:
        alone = msgspec.structs.replace(made, groups=[group])
        drawn = json.dumps(summary_picture(alone, "An answer."))
        ranked = [row for row in group.rows if row.summary.total]
        ranked.sort(key=lambda row: -row.summary.total.rate.value if row.summary.total else 0)
        places = [drawn.index(f'"{row.name}"') for row in ranked]
        assert places == sorted(places)
        assert "of the fastest" in drawn
    together = json.dumps(summary_picture(made, "An answer."))
    shares = [share_text(row) for group in groups for row in group.rows if row.summary.total]
    assert all(json.dumps(share) in together for share in shares)


@pytest.mark.parametrize(
    ("answer", "low", "high", "marked"),
    [
        ("worse", 0.77, 1.07, True),
        ("worse", 0.87, 0.95, False),
        ("worse", 0.77, 1.0, False),
        ("open", 0.87, 1.0, True),
        ("open", 0.87, 0.99, False),
        ("equal", 0.87, 0.99, False),
        ("equal", 0.87, 1.01, True),
    ],
)
def test_a_share_whose_interval_contains_1_is_marked(
    made: Report, answer: Answer, low: float, high: float, marked: bool
) -> None:
    row = next(row for group in made.groups for row in group.rows if row.comparison)
    assert row.comparison is not None
    compared = msgspec.structs.replace(
        row.comparison, answer=answer, ratio=Interval(value=0.91, low=low, high=high)
    )
    text = share_text(msgspec.structs.replace(row, comparison=compared, fastest=False))
    assert text.endswith(" ~") is marked


@pytest.mark.parametrize("aspect", [16 / 6, 4.0])
def test_a_picture_fills_the_canvas_that_is_asked_for(made: Report, aspect: float) -> None:
    plain = summary_picture(made, "An answer.")
    drawn = summary_picture(made, "An answer.", aspect=aspect)
    assert plain is not None
    assert drawn is not None
    assert plain["width"] / plain["height"] != pytest.approx(aspect, rel=0.02)
    assert drawn["width"] / drawn["height"] == pytest.approx(aspect, rel=0.02)


def test_few_bars_do_not_fill_a_tall_canvas(made: Report) -> None:
    heights = [
        spec["height"]
        for aspect in (None, 1.0, 0.5)
        if (spec := summary_picture(made, "An answer.", aspect=aspect))
    ]
    assert heights[0] < heights[1] == heights[2] < 3 * heights[0]


def test_nothing_measured_is_no_picture(made: Report) -> None:
    assert summary_png(msgspec.structs.replace(made, groups=[]), "") == b""


def test_a_client_keeps_its_colour_whatever_its_rank(made: Report) -> None:
    turned = msgspec.structs.replace(
        made.groups[0], rows=list(reversed(made.groups[0].rows)), lead=None
    )
    roles: dict[str, set[str]] = {}
    for group in (*made.groups, turned):
        for row in group.rows:
            own = "yardstick" if row.yardstick else identity(row.series, first=False)
            roles.setdefault(row.name, set()).add(own)
    assert all(len(found) == 1 for found in roles.values())
    assert len({min(found) for found in roles.values()}) == len(roles)


def test_more_clients_than_colours_share_one_and_first_is_dark() -> None:
    assert identity(None, first=False) == "other"
    assert identity(None, first=True) == "first"


def test_a_single_trial_is_hollow(made: Report) -> None:
    item = BarItem(
        label="a", role="other", of=Interval(value=1.0), figure="1", description="", hollow=True
    )
    layers = bar_chart([item], 500, axis="x", labels=SI_LABEL)["layer"]
    assert layers[0]["mark"]["filled"] is False
    whole = msgspec.structs.replace(item, hollow=False)
    assert "filled" not in bar_chart([whole], 500, axis="x", labels=SI_LABEL)["layer"][0]["mark"]
    assert made.groups


def test_a_picture_has_the_requested_title_size_and_theme(made: Report) -> None:
    style = Style(title="For a talk", size=(800, 450), theme="dark")
    content = summary_png(made, "The answer.", style)
    assert struct.unpack(">II", content[16:24]) == (800, 450)
    files = dict(plot_files(made, "svg", style))
    assert all(b"For a talk" in file for file in files.values())
    dark, light_paper = ROLES["paper"].dark.encode(), ROLES["paper"].light.encode()
    assert all(dark in file and light_paper not in file for file in files.values())
