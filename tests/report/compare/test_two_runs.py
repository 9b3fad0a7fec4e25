"""Two runs: what is compared, what is lost, what cannot be compared, and what differs besides."""

from __future__ import annotations

import msgspec
import pytest

from cachemark.model.errors import UsageError
from cachemark.model.experiment import Keys, RoundsTiming, Timing
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Operation
from cachemark.report.compare import RENDERERS, CellFilter, ComparisonReport, Side, compare_runs
from tests.builders.outcomes import WORKLOAD
from tests.builders.stored_runs import made_header, numbered, other_host, trials

ALL = CellFilter()


def compared(
    before: list[Outcome],
    after: list[Outcome],
    wanted: CellFilter = ALL,
    figures: tuple[str, ...] = ("rate",),
    **changes: object,
) -> ComparisonReport:
    """One run on each side."""
    old = Side(headers=[made_header("old")], outcomes=[numbered(before)])
    new = Side(headers=[made_header("new", 2, **changes)], outcomes=[numbered(after)])
    return compare_runs(old, new, wanted, figures, 2.0)


def four_runs(name: str, *cells: tuple[str, int]) -> Side:
    """Four runs of some clients at their rates; the runs differ a little."""
    return Side(
        headers=[made_header(f"{name}-{number}") for number in range(4)],
        outcomes=[
            numbered([t for client, rate in cells for t in trials(client, rate + number)])
            for number in range(4)
        ],
    )


def answers(of: ComparisonReport) -> dict[str, str]:
    return {row.other.client: c.answer for row in of.rows for c in row.contrasts}


def invalid(found: list[Outcome]) -> list[Outcome]:
    return [msgspec.structs.replace(t, verdict="INVALID", reasons=["it lied"]) for t in found]


def test_each_cell_has_its_answer() -> None:
    before = four_runs("old", ("a", 2000), ("b", 2000))
    after = four_runs("new", ("a", 1000), ("b", 4000))
    found = compare_runs(before, after, ALL, ("rate",), 2.0)
    assert answers(found) == {"a": "worse", "b": "better"}
    assert found.tests == 2
    assert found.regressed
    assert not found.paired


def test_runs_like_the_others_have_not_regressed() -> None:
    side = four_runs("old", ("a", 2000))
    found = compare_runs(side, four_runs("new", ("a", 2000)), ALL, ("rate",), 2.0)
    assert answers(found) == {"a": "equivalent"}
    assert not found.regressed


def test_one_run_on_a_side_gives_a_ratio_and_no_answer() -> None:
    """Its trials share its state, so they do not show how much runs differ."""
    found = compared(trials("a", 2000), trials("a", 1000))
    (contrast,) = found.rows[0].contrasts
    assert contrast.ratio
    assert contrast.ratio.value == pytest.approx(0.5, rel=0.02)
    assert (contrast.ratio.low, contrast.ratio.p, contrast.answer) == (None, None, "inconclusive")
    assert contrast.too_few_runs
    assert (found.tests, found.regressed) == (0, False)
    assert any("no answer" in note and "4 runs or more" in note for note in found.notes)


def test_a_cell_that_does_not_count_any_more_is_lost() -> None:
    before = [*trials("a", 2000), *trials("b", 2000)]
    found = compared(before, [*trials("a", 2000), *invalid(trials("b", 2000))])
    assert found.lost == ["b · embedded · mixed · one: it lied"]
    assert found.regressed


def test_a_cell_that_was_not_played_is_left_out() -> None:
    found = compared([*trials("a", 2000), *trials("b", 2000)], trials("a", 2000))
    assert found.left_out == ["b · embedded · mixed · one: no valid trial in new: not played"]
    assert not found.regressed


def test_a_figure_that_is_gone_is_lost() -> None:
    found = compared(trials("a", 500), trials("a", 100), figures=("p99",))
    assert found.lost == ["a · embedded · mixed · one: p99: some trials of the second lack it"]
    assert found.regressed


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"workload": msgspec.structs.replace(WORKLOAD, keys=Keys(count=7))},
            "workload.keys.count: default → 7",
        ),
        ({"timing": Timing(measure_ms=7)}, "timing.measure_ms: default → 7"),
    ],
)
def test_other_work_of_the_same_name_is_not_compared(changes: dict[str, object], text: str) -> None:
    before = [*trials("a", 2000), *trials("b", 2000)]
    after = [*trials("a", 2000), *trials("b", 1000, **changes)]
    found = compared(before, after)
    assert answers(found).keys() == {"a"}
    assert found.left_out == [f"b · embedded · mixed · one: the work differs: {text}"]
    with pytest.raises(UsageError, match="no cell to compare"):
        compared(before, trials("b", 1000, **changes))


def test_only_what_is_wanted_is_tested() -> None:
    before = [*trials("a", 2000), *trials("b", 2000)]
    found = compared(before, before, CellFilter(client=("b",)))
    assert answers(found).keys() == {"b"}
    with pytest.raises(UsageError, match="--client c: not in old or new"):
        compared(before, before, CellFilter(client=("c",)))


def test_what_differs_besides_is_told() -> None:
    after = trials("a", 2000)
    assert after[0].worker
    worker = msgspec.structs.replace(after[0].worker, library_version="2.0")
    newer = [msgspec.structs.replace(trial, worker=worker) for trial in after]
    found = compared(trials("a", 2000), newer, host=other_host(kernel="7.0"), cachemark="0.2.0")
    assert found.differences == [
        "kernel: 6.0 → 7.0",
        "cachemark: 0.1.0 → 0.2.0",
        "version of a: 1.0 → 2.0",
    ]
    assert not any("machines differ" in note for note in found.notes)
    awake = msgspec.structs.replace(made_header("new").experiment, awake=True)
    found = compared(after, after, experiment=awake)
    assert found.differences == ["CPUs kept awake: False → True"]
    there = compared(trials("a", 2000), after, host=other_host(cpu_model="Another"))
    assert "the machines differ, and each ratio includes this difference" in there.notes


def test_failures_that_came_are_told() -> None:
    after = trials("a", 2000)
    window = after[0].measure
    assert window
    failed = Operation(attempts=3, ok=0, errors={"timeout": 3})
    broken = msgspec.structs.replace(window, operations={**window.operations, "set": failed})
    after[0] = msgspec.structs.replace(after[0], measure=broken)
    found = compared(trials("a", 2000), after)
    assert "failed operations of a · embedded · mixed · one: 0 → 3" in found.notes


def test_an_open_loop_is_compared_by_its_times() -> None:
    load = msgspec.structs.replace(trials("a", 500)[0].load, schedule="poisson", rate=500.0)
    found = compared(trials("a", 500, load=load), trials("a", 500, load=load), figures=())
    assert [c.figure for row in found.rows for c in row.contrasts] == ["p50", "p99"]


def test_runs_that_looked_several_times_have_the_level_of_their_looks() -> None:
    """At the ordinary level, whoever looks three times is wrong too often."""
    fixed, looked = (
        [
            msgspec.structs.replace(
                header,
                experiment=msgspec.structs.replace(
                    header.experiment, design="rounds", blocks=12, rounds=RoundsTiming(until=until)
                ),
            )
            for header in four_runs("old", ("a", 2000), ("b", 1900)).headers
        ]
        for until in ("fixed", "settled")
    )
    before, after = four_runs("old", ("a", 2000)), four_runs("new", ("a", 1900))
    widths: list[float] = []
    for headers in (fixed, looked):
        old = msgspec.structs.replace(before, headers=headers)
        found = compare_runs(old, after, ALL, ("rate",), 2.0)
        (contrast,) = found.rows[0].contrasts
        assert contrast.ratio is not None
        assert contrast.ratio.low is not None
        assert contrast.ratio.high is not None
        widths.append(contrast.ratio.high - contrast.ratio.low)
    assert widths[1] > widths[0] * 1.1
    assert "ratio (98.4 %)" in RENDERERS["table"](found, 140)
    assert found.level == pytest.approx(0.0158)
