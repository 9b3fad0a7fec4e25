"""What labels claim of a ratio: never more than its interval does, for any interval and margin."""

import math

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from cachemark.analysis.statistics import Comparison, Interval, classify
from cachemark.model.experiment import Load
from cachemark.report.build import build
from cachemark.report.compare import RENDERERS, gate_answer
from cachemark.report.compare.gate import is_not_worse
from cachemark.report.compare.model import ComparisonReport, ComparisonRow
from cachemark.report.tables import share_text
from tests.builders.outcomes import experiment, header, measured

_PLANNED = msgspec.structs.replace(experiment(["a", "b"], 1), loads=[Load(name="one")])
_TRIALS = [measured("a", 0, 500), measured("b", 0, 400, index=1)]
_ROW = build(header(_PLANNED), _TRIALS).groups[0].rows[1]


@st.composite
def comparisons(draw: st.DrawFn) -> tuple[Comparison, float]:
    """A comparison with its answer, and the margin in percent."""
    log, below, above = draw(st.floats(-1, 1)), draw(st.floats(0, 0.5)), draw(st.floats(0, 0.5))
    margin = draw(st.sampled_from([0.0, 2.0, 5.0, 20.0]))
    low, value, high = math.exp(log - below), math.exp(log), math.exp(log + above)
    # An interval with 1 in it has no p below its level, and a family's p is larger still.
    least = 0.0 if high < 1 or low > 1 else 0.051
    p = draw(st.floats(least, 1))
    figure = draw(st.sampled_from(["rate", "p99"]))
    ratio = Interval(value=value, low=low, high=high, p=p)
    more = figure == "rate"
    answer = classify(ratio, p, margin / 100, more_is_better=more, bound=draw(st.floats(1, 1.2)))
    cell = measured("a", 0, 500).trial.cell
    return Comparison(
        figure=figure, first=cell, second=cell, ratio=ratio, p_holm=p, answer=answer, counts=(5, 5)
    ), margin


def ends(of: Comparison) -> tuple[float, float]:
    assert of.ratio is not None
    assert of.ratio.low is not None
    assert of.ratio.high is not None
    return of.ratio.low, of.ratio.high


@given(made=comparisons())
def test_tilde_means_that_the_interval_contains_one(made: tuple[Comparison, float]) -> None:
    of, _ = made
    low, high = ends(of)
    row = msgspec.structs.replace(_ROW, comparison=of, fastest=False)
    assert share_text(row).endswith("~") == (low <= 1 <= high)


@given(made=comparisons())
def test_tilde_without_an_interval_means_no_answer(made: tuple[Comparison, float]) -> None:
    of, _ = made
    alone = msgspec.structs.replace(of, ratio=Interval(value=0.63))
    row = msgspec.structs.replace(_ROW, comparison=alone, fastest=False)
    assert share_text(row) == ("0.63" if of.answer in ("better", "worse") else "0.63 ~")


@given(made=comparisons())
def test_worse_and_not_worse_need_their_interval(made: tuple[Comparison, float]) -> None:
    of, margin = made
    low, high = ends(of)
    worst, best = (low, high) if of.figure == "rate" else (1 / high, 1 / low)
    beyond = 1 + margin / 100
    if of.answer == "worse":
        assert best < 1
        assert worst < 1 / beyond
    if of.answer == "equal":
        assert 1 / beyond <= worst + 1e-9
        assert best <= beyond + 1e-9
    assert is_not_worse(of, margin) == (worst * beyond >= 1) or math.isclose(worst * beyond, 1)
    assert not (of.answer == "worse" and is_not_worse(of, margin))
    row = ComparisonRow(baseline=of.second, other=of.first, comparisons=[of])
    report = ComparisonReport(
        baseline="x", other="y", paired=True, margin_percent=margin, tests=1, rows=[row]
    )
    assert (gate_answer(report) == "failed") == report.regressed == (of.answer == "worse")
    assert f"| {of.answer} |" in RENDERERS["markdown"](report, 200)
