"""Contrasts: paired and unpaired figures of trials, decided as one family; how many would do."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
import scipy

from cachemark.analysis.statistics import (
    FIGURES,
    MAX_TRIALS,
    decide,
    figures_of,
    geometric_mean,
    paired,
    pairs_needed,
    trials_needed,
    unpaired,
)
from cachemark.model.outcome import Outcome
from tests.builders.outcomes import measured

RATE, P99, RSS = FIGURES["rate"], FIGURES["p99"], FIGURES["server-rss"]


def trials(client: str, rate: int, blocks: int = 5) -> list[Outcome]:
    return [measured(client, block, rate) for block in range(blocks)]


def test_blocks_that_only_one_has_are_not_compared() -> None:
    before, after = trials("a", 2000, 6), trials("b", 1800, 6)
    found = paired(RATE, before[1:], after[:5], 0.02)
    assert found.counts == (4, 4)
    by_hand = paired(RATE, before[1:5], after[1:5], 0.02)
    assert found == by_hand


def test_no_block_in_common_has_no_ratio() -> None:
    found = paired(RATE, trials("a", 2000)[:2], trials("b", 1800)[2:], 0.02)
    assert found.ratio is None
    assert found.why


def test_a_ratio_of_two_runs_is_welchs() -> None:
    """Over the runs, each of which is the geometric mean of its trials."""
    before = [trials("a", 2000 + 20 * number) for number in range(4)]
    after = [trials("b", 1800 + 30 * number) for number in range(6)]
    found = unpaired(RATE, before, after, 0.02)
    one, two = (
        [geometric_mean(figures_of(run, RATE) or []).value for run in side]
        for side in (before, after)
    )
    theirs = scipy.stats.ttest_ind(np.log(two), np.log(one), equal_var=False)
    assert found.counts == (4, 6)
    assert not found.too_few_runs
    assert found.ratio
    assert found.ratio.p == pytest.approx(theirs.pvalue)
    assert found.ratio.low == pytest.approx(math.exp(theirs.confidence_interval(0.95).low))


def test_a_figure_that_a_trial_lacks_is_lost() -> None:
    """The other trials of the slow side would be its fast ones."""
    before, after = trials("a", 500), trials("b", 500)
    after[2] = measured("b", 2, 100)
    assert figures_of(after, P99) is None
    found = unpaired(P99, [before], [after], 0.02)
    assert (found.ratio, found.lost) == (None, True)
    back = unpaired(P99, [after], [before], 0.02)
    assert (back.ratio, back.lost) == (None, False)
    assert unpaired(RATE, [before], [after], 0.02).ratio


def test_a_remote_server_has_no_memory_figure() -> None:
    far = [msgspec.structs.replace(trial, server_use=None) for trial in trials("a", 500)]
    assert unpaired(RSS, [far], [trials("b", 500)], 0.02).ratio is None


def test_less_time_is_better_and_fewer_operations_are_worse() -> None:
    before, after = trials("a", 2000), trials("b", 1000)
    for name, expected in (("rate", "worse"), ("p50", "worse"), ("client-cpu", "worse")):
        (found,) = decide([paired(FIGURES[name], before, after, 0.02)], FIGURES, 0.02)
        (back,) = decide([paired(FIGURES[name], after, before, 0.02)], FIGURES, 0.02)
        assert found.answer == expected
        assert back.answer == "better"


def test_a_family_is_corrected_together() -> None:
    one = paired(RATE, trials("a", 2000), trials("b", 1900), 0.02)
    assert one.ratio
    assert one.ratio.p
    many = decide([one] * 7, FIGURES, 0.02)
    assert many[0].p_holm == pytest.approx(7 * one.ratio.p)
    single = unpaired(RATE, [trials("a", 2000)], [trials("b", 1900)], 0.02)
    (alone, _) = decide([one, single], FIGURES, 0.02)
    assert alone.p_holm == one.ratio.p  # what has no p is no test
    assert single.why


def test_what_no_number_of_trials_would_show() -> None:
    wild = np.exp(np.array([-1.0, 0.0, 1.0])).tolist()
    assert pairs_needed(wild, [1.0, 1.0, 1.0], 0.02) is None
    assert trials_needed(wild, wild, 0.02) is None
    assert pairs_needed(wild, [1.0] * 3, 0.0) is None
    assert pairs_needed([1.0], [1.0], 0.02) is None
    assert MAX_TRIALS == 1000
