"""The gate of a comparison: what fails a build, and what does not."""

from xml.etree import ElementTree as ET

import msgspec
import pytest

from cachemark.analysis.rounds.answers import answers
from cachemark.analysis.rounds.looks import StopRule
from cachemark.analysis.rounds.questions import questions_of
from cachemark.analysis.statistics import Comparison, Interval
from cachemark.model.errors import UsageError
from cachemark.report.compare import (
    RENDERERS,
    CellFilter,
    ComparisonReport,
    Gate,
    check_gate,
    compare_in_turns,
    compare_within_run,
    gate_answer,
    gate_line,
)
from cachemark.report.compare.gate import is_not_worse
from tests.builders.outcomes import measured, numbered
from tests.builders.rounds import run as played_in_turns
from tests.builders.stored_runs import all_at, made_header, trials

STRICT = Gate(figures=("rate",), fail_on_inconclusive=True)
# Blocks of a client that halves the rate, too few and too noisy for a family of two tests.
NOISY = (0.42, 0.55, 0.70)


def noisy(figures: tuple[str, ...], gate: Gate | None = None) -> ComparisonReport:
    """Three blocks: `a`, and `b` with about half of its rate."""
    base = trials("a", 2000, blocks=3)
    slow = [
        msgspec.structs.replace(trial, trial=msgspec.structs.replace(trial.trial, block=block))
        for block, factor in enumerate(NOISY)
        for trial in trials("b", round(2000 * factor), blocks=1)
    ]
    wanted = CellFilter(client=("a", "b"))
    found = compare_within_run(made_header("run"), numbered([*base, *slow]), wanted, figures, 10.0)
    return msgspec.structs.replace(found, gate=gate)


def test_a_halved_rate_fails_whatever_is_shown_beside_it() -> None:
    for figures in (("rate",), ("rate", "p99"), ("rate", "p50", "p90", "p99", "client-cpu")):
        found = noisy(figures, Gate(figures=("rate",)))
        (comparison,) = [c for c in found.rows[0].comparisons if c.figure == "rate"]
        assert comparison.ratio is not None
        assert comparison.ratio.p is not None
        # In a family of two tests it would have passed.
        assert comparison.ratio.p < 0.05 < 2 * comparison.ratio.p
        assert comparison.p_holm == comparison.ratio.p
        assert gate_answer(found) == "failed"
        assert "Gate failed: 1 ratio of ops/s" in gate_line(found)


def equal(noise: tuple[float, ...], gate: Gate) -> ComparisonReport:
    """Blocks of two clients whose ratios are `noise`."""
    base = trials("a", 2000, blocks=len(noise))
    other = [
        msgspec.structs.replace(trial, trial=msgspec.structs.replace(trial.trial, block=block))
        for block, factor in enumerate(noise)
        for trial in [trials("b", round(2000 * factor), blocks=block + 1)[block]]
    ]
    wanted = CellFilter(client=("a", "b"))
    found = compare_within_run(made_header("run"), numbered([*base, *other]), wanted, ("rate",), 10)
    return msgspec.structs.replace(found, gate=gate)


def test_open_answers_fail_only_on_request() -> None:
    wild = (0.7, 1.4, 1.0, 1.2)
    assert gate_answer(equal(wild, Gate(figures=("rate",)))) == "passed"
    assert gate_answer(equal(wild, STRICT)) == "inconclusive"
    assert gate_answer(equal((1.0, 1.0, 1.0, 1.0), STRICT)) == "passed"


def test_a_figure_that_does_not_decide_does_not_fail() -> None:
    found = noisy(("rate", "server-rss"), Gate(figures=("server-rss",)))
    assert gate_answer(found) == "passed"
    assert gate_answer(noisy(("rate", "server-rss"))) == "failed"


def test_a_gate_without_its_figure_would_always_pass() -> None:
    with pytest.raises(UsageError, match="--gate p90: no cell has this figure"):
        check_gate(noisy(("rate",)), Gate(figures=("p90",)))


def test_junit_has_a_case_for_each_gated_ratio() -> None:
    root = ET.fromstring(RENDERERS["junit"](noisy(("rate", "p99"), Gate(figures=("rate",))), None))
    assert (root.get("tests"), root.get("failures")) == ("1", "1")
    (failure,) = root.iter("failure")
    assert failure.get("type") == "worse"
    wild = (0.7, 1.4, 1.0, 1.2)
    for gate, tag in ((Gate(figures=("rate",)), "skipped"), (STRICT, "failure")):
        (case,) = ET.fromstring(RENDERERS["junit"](equal(wild, gate), None)).iter("testcase")
        assert [child.tag for child in case] == [tag]


def test_what_the_correction_changes_has_both_intervals() -> None:
    """Of many cells, one alone would be significant; all together, it is not."""
    base = trials("a", 2000, blocks=3)
    others = [
        msgspec.structs.replace(moved, trial=msgspec.structs.replace(moved.trial, block=block))
        for number in range(6)
        for block, factor in enumerate(NOISY if number == 0 else (1.2, 0.8, 1.0))
        for moved in all_at(trials("b", round(2000 * factor), blocks=1), client=f"b{number}")
    ]
    wanted = CellFilter(client=("a", *[f"b{number}" for number in range(6)]))
    found = compare_within_run(
        made_header("run"), numbered([*base, *others]), wanted, ("rate",), 10.0
    )
    by_client = {row.other.client: row.comparisons[0] for row in found.rows}
    changed = by_client["b0"]
    assert changed.answer == "open"
    assert changed.ratio is not None
    assert changed.together is not None
    assert changed.ratio.high is not None
    assert changed.together.high is not None
    assert changed.ratio.high < 1 < changed.together.high
    assert by_client["b1"].together is None
    assert "corrected" in RENDERERS["table"](found, 160)


def in_turns(slow: float, gate: Gate, broken: tuple[str, ...] = ()) -> ComparisonReport:
    rates = {"base": 10_000, "head": 10_000 * slow}
    outcomes = [
        msgspec.structs.replace(of, state="failed", verdict=None, measure=None, rounds=None,
                                reason="cannot be imported")
        if of.trial.cell.client in broken else of
        for of in played_in_turns(rates, 6, deviation=0.005)
    ]  # fmt: skip
    cells = list(dict.fromkeys(outcome.trial.cell for outcome in outcomes))
    rule = StopRule(margin=0.05, looks=(6,))
    found = answers(outcomes, questions_of(cells), rule, final=True)
    return compare_in_turns(found, outcomes, ("base", "head"), gate)


def test_two_builds_in_turns_are_a_comparison_in_every_form() -> None:
    slower = in_turns(0.8, Gate(figures=("rate",)))
    (row,) = slower.rows
    (rate,) = [comparison for comparison in row.comparisons if comparison.figure == "rate"]
    assert rate.ratio is not None
    assert rate.ratio.value == pytest.approx(0.8, rel=0.05)
    assert (row.baseline.client, row.other.client) == ("base", "head")
    assert gate_answer(slower) == "failed"
    assert gate_answer(in_turns(1.0, STRICT)) == "passed"
    for form, render in RENDERERS.items():
        text = render(slower, 120)
        assert text.strip(), form
        assert "worse" in text, form


@pytest.mark.parametrize("gate", [Gate(figures=("rate",)), STRICT])
def test_a_head_that_never_works_fails(gate: Gate) -> None:
    lost = in_turns(1.0, gate, broken=("head",))
    assert gate_answer(lost) == "failed"
    check_gate(lost, gate)
    for form in ("table", "markdown", "junit", "json"):
        assert "cannot be imported" in RENDERERS[form](lost, 200), form
    root = ET.fromstring(RENDERERS["junit"](lost, None))
    assert [failure.get("type") for failure in root.iter("failure")] == ["missing"]


def test_a_base_that_never_works_is_no_baseline() -> None:
    for broken in (("base",), ("base", "head")):
        with pytest.raises(UsageError, match="no sitting has a valid trial of both"):
            in_turns(1.0, STRICT, broken)


def test_no_common_sitting_is_no_comparison() -> None:
    with pytest.raises(UsageError, match="no sitting has a valid trial of both"):
        compare_in_turns(answers([], [], StopRule(), final=True), [], ("base", "head"), STRICT)


@pytest.mark.parametrize(
    ("figure", "low", "value", "high", "shown"),
    [
        ("rate", 0.96, 1.01, 1.06, True),
        ("rate", 1 / 1.05, 1.0, 1.05, True),
        ("rate", 0.68, 0.82, 0.99, False),
        ("rate", 0.95, 1.0, 1.05, False),  # 5 % less than 1.05 is 1 / 1.05
        ("client-cpu", 0.90, 1.0, 1.05, True),
        ("client-cpu", 0.98, 1.02, 1.06, False),
    ],
)
def test_the_margin_is_compared_with_the_intervals_worse_end(
    figure: str, low: float, value: float, high: float, *, shown: bool
) -> None:
    cell = measured("a", 0, 1000).trial.cell
    ratio = Interval(value=value, low=low, high=high)
    compared = Comparison(figure=figure, first=cell, second=cell, ratio=ratio)
    assert is_not_worse(compared, 5) == shown
    within = msgspec.structs.replace(compared, scope="within")
    assert not is_not_worse(within, 5)


def test_an_instrument_that_errs_more_than_the_margin_shows_nothing() -> None:
    cell = measured("a", 0, 1000).trial.cell
    ratio = Interval(value=1.0, low=0.98, high=1.02, p=0.9)
    compared = Comparison(figure="rate", first=cell, second=cell, ratio=ratio, bound=1.05)
    assert is_not_worse(compared, 5)
    erring = msgspec.structs.replace(compared, bound=1.06)
    assert not is_not_worse(erring, 5)
    assert is_not_worse(msgspec.structs.replace(erring, answer="better"), 5)


def test_equal_rates_that_leave_out_1_have_both_intervals() -> None:
    """All intervals of a table of equal arms should hold, not each alone."""
    outcomes = [*trials("a", 2000), *trials("near", 2080), *trials("level", 2000)]
    wanted = CellFilter(client=("a", "near", "level"))
    found = compare_within_run(made_header("run"), numbered(outcomes), wanted, ("rate",), 10.0)
    near, level = (row.comparisons[0] for row in found.rows)
    assert (near.answer, level.answer) == ("equal", "equal")
    assert near.ratio is not None
    assert near.ratio.low is not None
    assert near.together is not None
    assert near.together.low is not None
    assert near.ratio.low > 1
    assert near.together.low < near.ratio.low
    assert level.together is None
