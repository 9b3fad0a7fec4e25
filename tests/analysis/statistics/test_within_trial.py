"""Intervals within one trial: which cells have one, and what they are made from."""

import msgspec
import numpy as np
import pytest

from cachemark.analysis.statistics import PERCENTILES, summarise, within
from cachemark.model import histogram
from cachemark.model.experiment import Load
from cachemark.model.histogram import Histogram
from cachemark.model.merging import merge
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Done, Operation
from cachemark.model.protocol_results import Sections
from cachemark.report.build import build
from cachemark.report.formats import RENDERERS
from tests.builders.histograms import from_values
from tests.builders.outcomes import LOAD, experiment, header, measured

EACH = 2000


def part(typical_ns: int, count: int = EACH) -> Histogram:
    """`count` times round a typical one, never the same few."""
    return from_values([typical_ns + i for i in range(count)])


def trial(typical_ns: list[int], *, timeouts: int = 0, load: Load = LOAD) -> Outcome:
    """A trial whose sections have these typical times."""
    parts = [part(ns) for ns in typical_ns]
    blob = histogram.encode(histogram.merge(parts))
    count = EACH * len(parts)
    gets = Operation(
        attempts=count,
        ok=count - timeouts,
        hits=count - timeouts,
        keys=count - timeouts,
        errors={"timeout": timeouts} if timeouts else {},
        response=blob,
        service=blob,
    )
    sections = Sections(
        length_ns=10**8,
        ok=[EACH] * len(parts),
        response=[histogram.encode(each) for each in parts],
    )
    window = Done(
        phase="measure",
        elapsed_ns=10**8 * len(parts),
        send_elapsed_ns=10**9,
        operations={"get": gets},
        sections=sections,
    )
    return msgspec.structs.replace(measured("made/a", 0, 100), measure=window, load=load)


def changed(outcome: Outcome, **fields: object) -> Outcome:
    """The same trial with another window."""
    assert outcome.measure is not None
    return msgspec.structs.replace(
        outcome, measure=msgspec.structs.replace(outcome.measure, **fields)
    )


LEVELS = [50_000, 51_000, 49_000, 52_000, 50_500, 49_500, 50_200, 51_500, 48_500, 50_000]


def test_a_percentile_is_of_the_trial_its_interval_of_sections() -> None:
    found = within(trial(LEVELS), PERCENTILES)
    assert (found.sections, found.section_ms, found.why) == (10, 100.0, "")
    p50 = found.percentiles_ns[50.0]
    assert p50 is not None
    assert p50.low is not None
    assert p50.high is not None
    whole = histogram.merge([part(ns) for ns in LEVELS]).percentile(50)
    assert p50.value == whole
    logs = np.log([part(ns).percentile(50) for ns in LEVELS]) - np.log(whole)
    # t(0.975, 9) = 2.262.
    reach = 2.262 * float(np.sqrt((logs**2).sum() / 9 / 10))
    assert np.log(p50.high / whole) == pytest.approx(reach, rel=1e-3)
    assert np.log(whole / p50.low) == pytest.approx(reach, rel=1e-3)
    rate = found.ops_per_s
    assert rate is not None
    assert rate.value == rate.low == rate.high == 20_000


def test_what_a_section_is_too_small_for_has_none() -> None:
    """2,000 operations in each do for p90, which needs 1,080, and not for p99: 11,040."""
    found = within(trial(LEVELS), PERCENTILES)
    assert {percent for percent, of in found.percentiles_ns.items() if of} == {50.0, 90.0}


def test_what_timed_out_has_none() -> None:
    found = within(trial(LEVELS, timeouts=11_000), PERCENTILES)
    assert found.percentiles_ns[50.0] is None


def test_the_rate_of_an_open_loop_was_given() -> None:
    load = Load(name="one", schedule="uniform", rate=20_000)
    assert within(trial(LEVELS, load=load), PERCENTILES).ops_per_s is None


def test_a_window_that_ended_before_its_time_has_none() -> None:
    assert "ended early" in within(changed(trial(LEVELS), elapsed_ns=9 * 10**8), [50.0]).why


def test_a_client_without_sections_says_so() -> None:
    assert "no sections" in within(measured("made/a", 0, 100), [50.0]).why
    assert "too few" in within(trial(LEVELS[:3]), [50.0]).why


def test_only_a_cell_with_one_trial_has_it() -> None:
    one = trial(LEVELS)
    second = msgspec.structs.replace(one.trial, index=1, block=1)
    other = msgspec.structs.replace(one, trial=second)
    (alone,) = summarise([one])
    (both,) = summarise([one, other])
    (beside,) = summarise([one, msgspec.structs.replace(other, verdict="INVALID")])
    assert alone.within is not None
    assert beside.within is not None
    assert both.within is None
    # The interval over trials is another field, and stays empty.
    assert alone.total is not None
    assert alone.total.rate.low is None
    assert both.total is not None
    assert both.total.rate.low is not None


def test_a_report_says_that_it_is_within_one_trial() -> None:
    text = RENDERERS["markdown"](build(header(experiment(["made/a"], 1)), [trial(LEVELS)]), None)
    assert "## Within one trial" in text
    assert "± is the interval within one trial" in text
    assert "p99 needs at least 11,040 operations in each section" in text
    # Its ranking has no ± of the kind that is over trials.
    ranking = text.partition("## Within one trial")[0]
    assert "20.0 k |" in ranking
    assert "±" not in ranking


def test_workers_sections_are_added_part_by_part() -> None:
    window = trial(LEVELS).measure
    assert window is not None
    both = merge([window, window])
    assert both.sections is not None
    assert both.sections.ok == [2 * EACH] * 10
    counts = [histogram.decode(blob or "").count for blob in both.sections.response]
    assert counts == [2 * EACH] * 10
    without = msgspec.structs.replace(window, sections=None)
    assert merge([window, without]).sections is None
