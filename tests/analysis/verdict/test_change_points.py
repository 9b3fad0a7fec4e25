"""Change points, trend and KPSS: held against brute force, closed forms and published values."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachemark.analysis.verdict.change_points import (
    KPSS_CRITICAL,
    change_points,
    kpss,
    noise,
    plateaus,
    smooth,
    trend,
)


def cost(values: np.ndarray, cuts: list[int], penalty: float) -> float:
    """The cost that PELT minimises."""
    ends = [0, *cuts, len(values)]
    parts = [values[a:b] for a, b in pairwise(ends)]
    squares = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    return squares + penalty * len(cuts)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-10, 10), min_size=6, max_size=11),
    st.floats(0.01, 30),
    st.integers(1, 3),
)
def test_pelt_is_exact(drawn: list[float], penalty: float, least: int) -> None:
    """No cut of any number of parts, tried one by one, is better."""
    values = np.array(drawn)
    found = change_points(values, penalty, least)
    ends = [0, *found, len(values)]
    assert all(b - a >= least for a, b in pairwise(ends))
    best = min(
        cost(values, list(cuts), penalty)
        for number in range(len(values))
        for cuts in combinations(range(1, len(values)), number)
        if all(b - a >= least for a, b in zip([0, *cuts], [*cuts, len(values)], strict=True))
    )
    assert cost(values, found, penalty) == pytest.approx(best, abs=1e-9)


def test_noise_is_not_moved_by_steps() -> None:
    draw = np.random.default_rng(1)
    values = draw.normal(0, 0.1, 400) + np.repeat([0, 5, -3, 9], 100)
    assert noise(values) == pytest.approx(0.1, rel=0.15)


def test_outliers_are_smoothed_away_and_steps_stay_where_they_are() -> None:
    values = np.repeat([1.0, 2.0], 20)
    values[[5, 6, 30]] = 50
    assert smooth(values).tolist() == np.repeat([1.0, 2.0], 20).tolist()


@pytest.mark.parametrize("step", [0.2, 0.7])
def test_levels_are_found_in_noise(step: float) -> None:
    draw = np.random.default_rng(2)
    for _ in range(50):
        values = draw.normal(0, 0.05, 100) + np.repeat([0, step], [30, 70])
        (_, first), (second, _) = plateaus(values, 10, 0.095)
        assert first == second
        assert abs(first - 30) <= 2


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_a_level_that_is_one_is_not_cut(correlation: float) -> None:
    """Noise of 5 %, also where each slice is like the one before: hardly one in 500 is cut."""
    cut = 0
    draw = np.random.default_rng(3)
    for _ in range(500):
        steps = draw.normal(0, 0.05 * (1 - correlation**2) ** 0.5, 100)
        values = np.empty(100)
        values[0] = steps[0]
        for i in range(1, 100):
            values[i] = correlation * values[i - 1] + steps[i]
        cut += len(plateaus(values, 10, 0.095)) > 1
    assert cut <= (5 if correlation else 0)


def test_trend_is_a_slope_that_outliers_do_not_move() -> None:
    values = np.linspace(0, 0.5, 101)
    values[::5] += 100
    assert trend(values) == pytest.approx(0.5, rel=1e-9)


def test_kpss_by_hand() -> None:
    """Without lags (n < 100/256 · …): residuals −1.5 … 1.5, sums −1.5 −2 −1.5 0, Σ² = 8.5."""
    # 4 points have 4 · 0.04^¼ = 1 lag: s² = 5 + 2 · ½ · 1.25.
    assert kpss([1, 2, 3, 4]) == pytest.approx(8.5 / (4 * (5 + 1.25)), rel=1e-12)


def test_kpss_has_the_size_that_its_table_says() -> None:
    """Of level series 1 % are rejected; of series that double half-way, all."""
    draw = np.random.default_rng(4)
    level = [kpss(draw.normal(0, 1, 120)) > KPSS_CRITICAL for _ in range(2000)]
    assert 0.002 <= float(np.mean(level)) <= 0.02
    stepped = [
        kpss(np.repeat([0.0, 0.69], 60) + draw.normal(0, 0.1, 120)) > KPSS_CRITICAL
        for _ in range(100)
    ]
    assert all(stepped)
