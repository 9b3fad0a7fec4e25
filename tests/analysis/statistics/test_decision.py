"""Answers: what each needs, how often they are wrong, and what must hold for any figures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachemark.analysis.statistics import Answer, Interval, classify, holm
from cachemark.analysis.statistics.decision import OPPOSITE
from tests.builders.compared import paired_ratio, unpaired_ratio

MARGIN = 0.02
# 3.29 standard errors: a test with a right nominal rate fails once in a thousand seeds.
SIGMAS = 3.29

figures = st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=12)
pairs = st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6)), min_size=2, max_size=12)
tests = st.dictionaries(st.integers(), st.floats(0, 1), min_size=1, max_size=20)


def classified(of: Interval, p: float | None) -> Answer:
    return classify(of, p, MARGIN, more_is_better=True)


def within(rate: float, nominal: float, count: int) -> bool:
    """Whether an observed rate is a nominal one, but for chance."""
    return abs(rate - nominal) <= SIGMAS * (nominal * (1 - nominal) / count) ** 0.5


@pytest.mark.parametrize(
    ("low", "value", "high", "p", "expected"),
    [
        (1.03, 1.05, 1.07, 0.01, "better"),
        (0.90, 0.95, 0.97, 0.01, "worse"),
        (0.99, 1.00, 1.01, 0.90, "equal"),
        (1.005, 1.01, 1.015, 0.001, "equal"),  # shown, and too small to matter
        (1 / 1.0199, 1.00, 1.0199, 0.90, "equal"),  # the margin itself is inside
        (0.98, 1.00, 1.02, 0.90, "open"),  # 2 % more is as far from 1 as 1/1.02, not as 0.98
        (0.90, 1.00, 1.10, 0.90, "open"),
        (1.001, 1.015, 1.029, 0.01, "open"),  # shown, and perhaps too small to matter
        (1.03, 1.05, 1.07, 0.06, "open"),  # not once it is corrected
        (0.99, 1.05, 1.11, 0.02, "better"),  # the p decides; the interval may hold for a table
    ],
)
def test_what_an_answer_needs(
    low: float, value: float, high: float, p: float, expected: str
) -> None:
    assert classified(Interval(value=value, low=low, high=high), p) == expected


@given(st.floats(0.5, 2), st.floats(1, 1.3), st.floats(0, 1), st.floats(1, 1.2), st.booleans())
def test_swapped_sides_give_the_opposite_answer(
    value: float, reach: float, p: float, bound: float, more: bool
) -> None:
    one = Interval(value=value, low=value / reach, high=value * reach)
    other = Interval(value=1 / value, low=1 / one.high, high=1 / one.low)  # type: ignore[operator]
    answers: list[Answer] = [
        classify(of, p, 0.1, more_is_better=more, bound=bound) for of in (one, other)
    ]
    # On the very edge of the margin, or of the instrument's own error, rounding decides.
    edges = [abs(abs(np.log(value) + s * np.log(reach)) - np.log(1.1)) for s in (-1, 0, 1)]
    edges.append(abs(abs(np.log(value)) - np.log(bound)))
    assert answers[1] == OPPOSITE[answers[0]] or min(edges) < 1e-9


def test_a_margin_is_the_same_for_rates_and_costs() -> None:
    """Of a rate 9.15 % less and of a cost 10 % more is the same difference."""
    rate = Interval(value=0.9085, low=0.905, high=0.912)
    cost = Interval(value=1 / 0.9085, low=1 / 0.912, high=1 / 0.905)
    for of, more in ((rate, True), (cost, False)):
        assert classify(of, 0.001, 0.1, more_is_better=more) == "worse"


def test_what_is_within_the_instruments_own_error_is_no_answer() -> None:
    ratio = Interval(value=1.06, low=1.05, high=1.07)
    assert classify(ratio, 0.001, 0.05, more_is_better=True, bound=1.05) == "better"
    assert classify(ratio, 0.001, 0.05, more_is_better=True, bound=1.08) == "open"
    equal = Interval(value=1.0, low=0.99, high=1.01)
    assert classify(equal, 0.9, 0.05, more_is_better=True, bound=1.04) == "equal"
    assert classify(equal, 0.9, 0.05, more_is_better=True, bound=1.08) == "open"


def test_without_an_interval_nothing_is_shown() -> None:
    assert classified(Interval(value=2.0), None) == "open"


@given(tests)
def test_holm_only_raises(p: dict[int, float]) -> None:
    found = holm(p)
    assert found.keys() == p.keys()
    assert all(p[name] <= found[name] <= min(1.0, p[name] * len(p)) for name in p)
    ordered = sorted(p, key=p.__getitem__)
    assert [found[name] for name in ordered] == sorted(found.values())


@given(tests)
def test_holm_rejects_what_its_steps_reject(p: dict[int, float]) -> None:
    """The procedure as Holm states it: stop at the first that misses its own level."""
    rejected: set[int] = set()
    for position, name in enumerate(sorted(p, key=p.__getitem__)):
        if p[name] * (len(p) - position) >= 0.05:
            break
        rejected.add(name)
    assert {name for name, value in holm(p).items() if value < 0.05} == rejected


@given(pairs)
@settings(deadline=None)
def test_swapped_sides_give_the_inverse(values: list[tuple[float, float]]) -> None:
    first, second = ([pair[side_] for pair in values] for side_ in (0, 1))
    for ratio in (paired_ratio, unpaired_ratio):
        one, other = ratio(first, second), ratio(second, first)
        assert one.value * other.value == pytest.approx(1)
        assert one.p == pytest.approx(other.p, abs=1e-9)


@given(figures, st.floats(0.01, 100))
@settings(deadline=None)
def test_the_unit_is_of_no_account(values: list[float], factor: float) -> None:
    other = [value * (1 + 0.1 * (number % 3)) for number, value in enumerate(values)]
    for ratio in (paired_ratio, unpaired_ratio):
        here = ratio(values, other)
        there = ratio([value * factor for value in values], [value * factor for value in other])
        assert there.value == pytest.approx(here.value)
        assert there.p == pytest.approx(here.p, abs=1e-6)


@given(pairs, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_the_blocks_is_of_no_account(
    values: list[tuple[float, float]], draw: object
) -> None:
    shuffled = list(values)
    draw.shuffle(shuffled)  # type: ignore[attr-defined]
    here, there = (
        paired_ratio([one for one, _ in blocks], [two for _, two in blocks])
        for blocks in (values, shuffled)
    )
    assert there.value == pytest.approx(here.value)
    assert there.p == pytest.approx(here.p, abs=1e-6)


@pytest.mark.parametrize(
    ("first", "second", "sizes"),
    [(0.03, 0.03, (5, 5)), (0.02, 0.08, (5, 5)), (0.03, 0.03, (10, 4)), (0.05, 0.02, (4, 12))],
)
def test_an_interval_of_two_runs_holds_the_truth(
    first: float, second: float, sizes: tuple[int, int]
) -> None:
    """Coverage of 95 % where spreads and numbers of trials differ; Welch's is a little more."""
    draw = np.random.default_rng(7)
    count, held = 500, 0
    for _ in range(count):
        before = np.exp(draw.normal(0, first, sizes[0]))
        after = 1.1 * np.exp(draw.normal(0, second, sizes[1]))
        ratio = unpaired_ratio(after.tolist(), before.tolist())
        assert ratio.low is not None
        assert ratio.high is not None
        held += ratio.low <= 1.1 <= ratio.high
    assert 0.925 <= held / count <= 0.985


def test_a_family_of_equals_is_seldom_called_different_at_all() -> None:
    """With Holm the whole family errs in 5 % of runs; without, in 1 − 0.95¹² = 46 %."""
    draw = np.random.default_rng(11)
    count, with_holm, without = 300, 0, 0
    for _ in range(count):
        p: dict[int, float] = {}
        for number in range(12):
            ratio = paired_ratio(*np.exp(draw.normal(0, 0.02, (2, 6))).tolist())
            assert ratio.p is not None
            p[number] = ratio.p
        without += min(p.values()) < 0.05
        with_holm += min(holm(p).values()) < 0.05
    assert within(with_holm / count, 0.05, count)
    assert within(without / count, 1 - 0.95**12, count)


def test_what_lies_on_the_margin_is_seldom_called_equal() -> None:
    """At the margin's edge, in 2.5 % of runs at most; well inside, nearly always."""
    draw = np.random.default_rng(13)
    count = 600

    def called(truth: float, spread: float) -> float:
        found = 0
        for _ in range(count):
            before = np.exp(draw.normal(0, spread, 8))
            after = truth * np.exp(draw.normal(0, spread, 8))
            ratio = paired_ratio(after.tolist(), before.tolist())
            found += classified(ratio, ratio.p) == "equal"
        return found / count

    assert called(1 + MARGIN, 0.01) <= 0.025 + SIGMAS * (0.025 * 0.975 / count) ** 0.5
    assert called(1.0, 0.005) > 0.99


def test_a_regression_beyond_the_margin_is_found() -> None:
    """5 % slower with 1 % of spread, in ten pairs, is shown nearly always; 1 % slower never is."""
    draw = np.random.default_rng(17)

    def shown(truth: float) -> float:
        found = 0
        for _ in range(300):
            hours = draw.normal(0, 0.03, 10)
            before = np.exp(hours + draw.normal(0, 0.01, 10))
            after = truth * np.exp(hours + draw.normal(0, 0.01, 10))
            ratio = paired_ratio(after.tolist(), before.tolist())
            found += classified(ratio, ratio.p) == "worse"
        return found / 300

    assert shown(0.95) > 0.99
    assert shown(0.99) <= 0.03
