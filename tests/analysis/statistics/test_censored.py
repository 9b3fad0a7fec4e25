"""F16: percentiles that reach operations which timed out are bounds, and printed as such."""

import msgspec
import pytest

from cachemark.analysis.number_format import percentile
from cachemark.analysis.statistics import FIGURES, figures_of, response_ns, summarise
from cachemark.analysis.statistics.censored_times import censoring_threshold_ns
from cachemark.model import histogram
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Operation
from cachemark.report.build import build
from cachemark.report.csv_file import render as csv
from cachemark.report.formats import RENDERERS
from tests.builders.histograms import from_values
from tests.builders.outcomes import experiment, header, measured

MS = 1_000_000


def gets(responses: list[int], services: list[int], timeouts: int) -> Operation:
    """Operations of those times, the longest of which timed out."""
    return Operation(
        attempts=len(responses),
        ok=len(responses) - timeouts,
        hits=len(responses) - timeouts,
        keys=len(responses) - timeouts,
        errors={"timeout": timeouts} if timeouts else {},
        response=histogram.encode(from_values(responses)),
        service=histogram.encode(from_values(services)),
    )


# 1 % of 100,000 is never answered and given up after 250 ms.
F16 = gets([MS] * 99_000 + [250 * MS] * 1000, [MS] * 99_000 + [250 * MS] * 1000, 1000)


def trial(operation: Operation, block: int = 0) -> Outcome:
    outcome = measured("a", block, 1000)
    assert outcome.measure is not None
    window = msgspec.structs.replace(outcome.measure, operations={"get": operation})
    return msgspec.structs.replace(outcome, measure=window)


def test_f16_the_rank_of_p99_is_the_last_answered_one() -> None:
    assert response_ns([F16], 99) == pytest.approx(MS, rel=1 / 1024)
    assert response_ns([F16], 99.001) is None
    assert censoring_threshold_ns([F16]) == pytest.approx(250 * MS, rel=1 / 1024)


def test_a_wait_longer_than_the_time_out_lies_above_it() -> None:
    """1 % waited 400 ms for a connection and was answered; the 250 ms below them are no figure."""
    responses = [MS] * 9800 + [250 * MS] * 100 + [400 * MS] * 100
    services = [MS] * 9900 + [250 * MS] * 100
    mixed = gets(responses, services, 100)
    assert response_ns([mixed], 98) == pytest.approx(MS, rel=1 / 1024)
    assert response_ns([mixed], 98.5) is None
    assert response_ns([mixed], 99.5) is None


def test_without_time_outs_nothing_is_held_back() -> None:
    slow = gets([MS] * 99_000 + [250 * MS] * 1000, [MS] * 100_000, 0)
    assert censoring_threshold_ns([slow]) is None
    assert response_ns([slow], 99.5) == pytest.approx(250 * MS, rel=1 / 1024)


def test_a_summary_keeps_censored_times_apart_and_forms_print_bounds() -> None:
    outcomes = [trial(F16, block) for block in range(2)]
    (summary,) = summarise(outcomes)
    assert summary.total is not None
    times = summary.total.response
    assert times is not None
    assert times.percentiles[99.9] is None
    assert times.at_least == {99.9: pytest.approx(250 * MS, rel=1 / 1024)}
    assert percentile(times, 99.9) == "≥250 ms"
    assert percentile(times, 99.0) == "1.00 ms"
    assert max(point.ns for point in times.curve) < 2 * MS
    report = build(header(experiment(["a"], 2)), outcomes)
    assert "| ≥250 ms |" in RENDERERS["markdown"](report, None)
    assert not any("needs 3688" in note for note in report.notes)
    assert "250" not in csv(report).splitlines()[1].split(",")[13]


def test_nothing_is_compared_by_a_bound() -> None:
    assert figures_of([trial(F16)], FIGURES["p99.9"]) is None
    assert figures_of([trial(F16)], FIGURES["p99"]) is not None
