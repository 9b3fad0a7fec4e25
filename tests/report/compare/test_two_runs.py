"""Two runs: what is compared, what is lost, what cannot be compared, and what differs besides."""

from typing import Any

import msgspec
import pytest

from cachemark.model.errors import UsageError
from cachemark.model.experiment import Keys, Timing
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Operation
from cachemark.report.compare import (
    CellFilter,
    ComparisonReport,
    Gate,
    Side,
    compare_runs,
    gate_answer,
)
from tests.builders.outcomes import WORKLOAD, numbered
from tests.builders.stored_runs import in_turns, made_header, other_host, trials

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


def four_runs(name: str, *cells: tuple[str, int], first_day: int = 0) -> Side:
    """Four runs of some clients at their rates; the runs differ a little.

    Those that are named `old` take turns with the others, unless they have their own first day.
    """
    days = [
        first_day + number if first_day else in_turns(number, second=name != "old")
        for number in range(4)
    ]
    return Side(
        headers=[made_header(f"{name}-{number}", day) for number, day in enumerate(days)],
        outcomes=[
            numbered([t for client, rate in cells for t in trials(client, rate + number)])
            for number in range(4)
        ],
    )


def answers(of: ComparisonReport) -> dict[str, str]:
    return {row.other.client: c.answer for row in of.rows for c in row.comparisons}


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
    assert answers(found) == {"a": "equal"}
    assert not found.regressed


def test_one_run_on_a_side_gives_only_a_ratio() -> None:
    """Its trials share its state, so they do not show how much runs differ."""
    found = compared(trials("a", 2000), trials("a", 1000))
    (comparison,) = found.rows[0].comparisons
    assert comparison.ratio
    assert comparison.ratio.value == pytest.approx(0.5, rel=0.02)
    assert (comparison.ratio.low, comparison.ratio.p, comparison.answer) == (None, None, "open")
    assert not comparison.tested
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
    found = compared(trials("a", 500), trials("a", 10), figures=("p99",))
    assert found.lost == ["a · embedded · mixed · one: p99: some trials of the other lack it"]
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
def test_other_work_of_the_same_name_is_not_compared(changes: dict[str, Any], text: str) -> None:
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
    assert [c.figure for row in found.rows for c in row.comparisons] == ["p50", "p99"]


def test_runs_that_were_not_played_in_turns_have_no_answer() -> None:
    """All of one side before all of the other: any difference may be the machine's."""
    before = four_runs("old", ("a", 2000), first_day=1)
    after = four_runs("new", ("a", 1000), first_day=5)
    found = compare_runs(before, after, ALL, ("rate",), 2.0)
    (comparison,) = found.rows[0].comparisons
    assert comparison.ratio is not None
    assert comparison.ratio.value == pytest.approx(0.5, rel=0.02)
    assert (comparison.ratio.low, comparison.answer) == (None, "open")
    assert (found.tests, found.regressed) == (0, False)
    assert any("these runs were not played in turns" in note for note in found.notes)
    asked = msgspec.structs.replace(found, gate=Gate(fail_on_inconclusive=True))
    assert gate_answer(asked) == "inconclusive"
