"""Virtual experiments with a known truth: are the intervals and the order of trials what they say?

F25 to F27 of the fidelity cases. The trials are drawn, not run; plan, comparison and intervals are
the orchestrator's own. Each has a control beside it, a usual way of doing it that fails: so a test
that passed whatever is done would be noticed.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from cachemark.analysis.rounds.answers import answers as answers_of
from cachemark.analysis.rounds.questions import questions_of
from cachemark.analysis.statistics import Interval, geometric_mean
from cachemark.model.outcome import Outcome, Trial
from cachemark.model.plan import make_plan
from tests.builders.compared import BY_BLOCK, compared, paired_ratio, unpaired_ratio
from tests.builders.outcomes import experiment, measured

EXPERIMENTS = 200
BLOCKS = 10
RATE = 100_000
Order = Callable[[int], list[Trial]]

TEMPLATE = measured("made/a", 0, 100)


def interleaved(seed: int) -> list[Trial]:
    """The trials as cachemark plans them."""
    made = msgspec.structs.replace(experiment(["made/a", "made/b"], BLOCKS), seed=seed)
    return make_plan(made).trials


def in_sequence(seed: int) -> list[Trial]:
    """All of the one, then all of the other, as benchmarks are often run."""
    trials = sorted(interleaved(seed), key=lambda trial: trial.cell.client)
    return [msgspec.structs.replace(trial, index=i) for i, trial in enumerate(trials)]


def run(
    trials: Sequence[Trial],
    draw: np.random.Generator,
    *,
    effect: float = 1.0,
    drift: float = 0.0,
    block_sd: float = 0.0,
    trial_sd: float = 0.005,
) -> list[Outcome]:
    """The trials' results if `made/b` was `effect` times as fast as `made/a`."""
    of_block = draw.normal(0, block_sd, BLOCKS)
    outcomes: list[Outcome] = []
    for trial in trials:
        noise = of_block[trial.block] + draw.normal(0, trial_sd)
        drifted = 1 + drift * trial.index / (len(trials) - 1)
        own = effect if trial.cell.client == "made/b" else 1.0
        count = round(RATE * own * drifted * float(np.exp(noise)))
        assert TEMPLATE.measure is not None
        gets = msgspec.structs.replace(
            TEMPLATE.measure.operations["get"], attempts=count, ok=count, hits=count, keys=count
        )
        window = msgspec.structs.replace(TEMPLATE.measure, operations={"get": gets})
        outcomes.append(msgspec.structs.replace(TEMPLATE, trial=trial, measure=window))
    return outcomes


def ratios(order: Order, seed: int, **truth: float) -> list[Interval]:
    """The interval of b against a in each of the virtual experiments."""
    draw = np.random.default_rng(seed)
    found: list[Interval] = []
    for number in range(EXPERIMENTS):
        outcomes = run(order(number), draw, **truth)
        comparison = compared(outcomes, "made/b", "made/a", 0.01)
        assert comparison.ratio is not None
        found.append(comparison.ratio)
    return found


def holds(interval: Interval, truth: float) -> bool:
    """Whether an interval contains the truth."""
    assert interval.low is not None
    assert interval.high is not None
    return interval.low <= truth <= interval.high


def share(found: Sequence[bool]) -> float:
    """The part that is true."""
    return sum(found) / len(found)


def mean(found: Sequence[Interval]) -> float:
    """The mean estimate."""
    return float(np.mean([interval.value for interval in found]))


def test_f25_the_same_client_twice_is_no_difference() -> None:
    found = ratios(interleaved, 25, block_sd=0.03)
    assert 0.90 <= share([holds(ratio, 1) for ratio in found]) <= 0.99


def test_f25_a_drift_of_the_machine_is_no_difference() -> None:
    found = ratios(interleaved, 26, drift=0.05)
    assert mean(found) == pytest.approx(1, abs=0.003)
    assert 0.90 <= share([holds(ratio, 1) for ratio in found]) <= 0.99


def test_f25_in_sequence_a_drift_would_be_one() -> None:
    found = ratios(in_sequence, 27, drift=0.05)
    assert mean(found) == pytest.approx(1.026, abs=0.003)
    assert share([holds(ratio, 1) for ratio in found]) < 0.05


def test_f26_two_percent_are_found_under_the_noise_of_blocks() -> None:
    found = ratios(interleaved, 28, effect=1.02, block_sd=0.03)
    assert mean(found) == pytest.approx(1.02, abs=0.005)
    assert share([not holds(ratio, 1) for ratio in found]) >= 0.99


def test_f26_unpaired_they_would_not_be() -> None:
    draw = np.random.default_rng(29)
    seen: list[bool] = []
    for _ in range(EXPERIMENTS):
        noise = draw.normal(0, 0.03, (2, BLOCKS)) + draw.normal(0, 0.005, (2, BLOCKS))
        first, second = np.exp(noise[0]) * 1.02, np.exp(noise[1])
        seen.append(not holds(unpaired_ratio(first.tolist(), second.tolist()), 1))
    assert share(seen) < 0.5


def test_pairs_by_block_are_what_finds_it() -> None:
    """The same figures in another order of blocks are no pairs, and find little."""
    draw = np.random.default_rng(30)
    seen: list[bool] = []
    for _ in range(EXPERIMENTS):
        blocks = draw.normal(0, 0.03, BLOCKS)
        first = np.exp(blocks + draw.normal(0, 0.005, BLOCKS)) * 1.02
        second = np.exp(blocks + draw.normal(0, 0.005, BLOCKS))
        seen.append(not holds(paired_ratio(first.tolist(), np.roll(second, 3).tolist()), 1))
    assert share(seen) < 0.5


# F27: a percentile of correlated response times over five trials.

TRIALS = 5
REQUESTS = 20_000
RUNS = 300
P99 = -np.log(0.01)


def sojourns(draw: np.random.Generator, busy: float, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Times in an M/M/1 queue in its steady state, in units of their mean; `busy` 0: independent.

    Lindley's recursion as a running maximum, from a wait of the stationary law.
    """
    if not busy:
        return draw.exponential(1, shape)
    rows, count = shape
    service = draw.exponential(1, shape)
    gaps = draw.exponential(1 / busy, (rows, count - 1))
    first = np.where(draw.random(rows) < busy, draw.exponential(1 / (1 - busy), rows), 0.0)
    walk = np.concatenate([first[:, None], service[:, :-1] - gaps], axis=1).cumsum(axis=1)
    waits = walk - np.minimum(np.minimum.accumulate(walk, axis=1), 0)
    return (waits + service) * (1 - busy)


def nearest_rank(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """p99 of each row."""
    rank = int(np.ceil(0.99 * times.shape[1])) - 1
    return np.partition(times, rank, axis=1)[:, rank]


@pytest.mark.parametrize("busy", [0.0, 0.5, 0.8])
def test_f27_the_interval_of_a_percentile_covers_it(busy: float) -> None:
    """`p99_ns` of a summary has Student's t over the trials' own percentiles, on logs."""
    draw = np.random.default_rng(round(100 * busy))
    covered = [
        holds(geometric_mean(nearest_rank(sojourns(draw, busy, (TRIALS, REQUESTS))).tolist()), P99)
        for _ in range(RUNS)
    ]
    assert 0.90 <= share(covered) <= 0.99


def test_f27_as_if_requests_were_independent_it_would_not() -> None:
    """The order-statistic interval of one trial at ρ = 0.8, as if its requests were a sample."""
    draw = np.random.default_rng(27)
    low, high = (int(rank) for rank in scipy.stats.binom.ppf([0.025, 0.975], REQUESTS, 0.99))
    times = np.sort(sojourns(draw, 0.8, (RUNS, REQUESTS)), axis=1)
    covered = (times[:, low] <= P99) & (times[:, high] >= P99)
    assert share(covered.tolist()) < 0.3


# The A/A arm: a client that is played twice, judged by the very rule that answers "faster".


def of_itself(number: int, draw: np.random.Generator, margin_percent: float, **truth: float) -> str:
    """The answer of one virtual experiment to: is a client faster than itself?"""
    made = msgspec.structs.replace(experiment(["made/a"], BLOCKS), seed=number, twice="made/a")
    outcomes = run(make_plan(made).trials, draw, **truth)
    found = compared(outcomes, "made/a#again", "made/a", margin_percent / 100)
    assert found.count == BLOCKS
    return found.answer


@pytest.mark.parametrize("margin_percent", [0.0, 1.0, 2.0])
def test_the_aa_arm_differs_in_one_of_twenty_at_most(
    margin_percent: float,
) -> None:
    """400 experiments, noise of 3 % for blocks and 2 % for trials; without a margin it is 5 %."""
    draw = np.random.default_rng(31)
    answers = [of_itself(n, draw, margin_percent, block_sd=0.03, trial_sd=0.02) for n in range(400)]
    false = share([answer in ("better", "worse") for answer in answers])
    least = 0.02 if margin_percent == 0.0 else 0.0
    # 5 % of 400, and 3.29 σ.
    assert least <= false <= 0.05 + 3.29 * (0.05 * 0.95 / 400) ** 0.5


def test_the_aa_arm_finds_what_is_false() -> None:
    """Played in sequence on a machine that drifts, a client does differ from itself."""
    draw = np.random.default_rng(32)
    made = msgspec.structs.replace(experiment(["made/a"], BLOCKS), twice="made/a")
    trials = sorted(make_plan(made).trials, key=lambda trial: trial.cell.client)
    outcomes = run(
        [msgspec.structs.replace(trial, index=i) for i, trial in enumerate(trials)],
        draw,
        drift=0.05,
    )
    found = compared(outcomes, "made/a#again", "made/a", 0.01)
    assert found.answer in ("better", "worse")


def test_the_second_name_is_no_alternative() -> None:
    """It is not in the ranking's family, which would cost the others power."""
    made = msgspec.structs.replace(experiment(["made/a", "made/b"], BLOCKS), twice="made/a")
    outcomes = run(make_plan(made).trials, np.random.default_rng(33), effect=1.02)
    cells = list(dict.fromkeys(outcome.trial.cell for outcome in outcomes))
    found = answers_of(outcomes, questions_of(cells), BY_BLOCK, final=True, figures=["rate"])
    (comparison,) = found.groups[0].rankings[0].pairs
    assert {comparison.first.client, comparison.second.client} == {"made/a", "made/b"}
    assert comparison.ratio is not None
    assert comparison.p_holm == comparison.ratio.p
