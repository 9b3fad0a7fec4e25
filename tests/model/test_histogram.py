"""Histograms: the layout of HdrHistogram, the nearest rank, and merging is adding."""

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from cachemark.model import histogram
from cachemark.model.histogram import HistogramError
from tests.builders.histograms import from_values

VALUES = st.lists(st.integers(1, histogram.HIGHEST_NS), min_size=1, max_size=200)
PERCENTS = (1, 50, 90, 99, 99.9, 100)


@given(VALUES)
def test_percentiles_are_the_nearest_rank(values: list[int]) -> None:
    theirs = HdrHistogram(1, histogram.HIGHEST_NS, 3)
    for value in values:
        theirs.record_value(value)
    ours = histogram.decode(theirs.encode().decode())
    assert ours.count == len(values)
    for percent in PERCENTS:
        # hdrhistogram's own percentile rounds the rank to the nearest, ours goes up: ceil(p · n).
        rank = -(-int(10 * percent) * len(values) // 1000)
        value = sorted(values)[rank - 1]
        assert ours.percentile(percent) == theirs.get_highest_equivalent_value(value)


@given(VALUES)
def test_values_are_recorded_with_an_error_below_a_thousandth(values: list[int]) -> None:
    for value in values:
        kept = from_values([value]).percentile(50)
        assert value <= kept <= value * 1.00098


@given(VALUES, VALUES)
def test_merging_adds_counts(first: list[int], second: list[int]) -> None:
    merged = histogram.merge([from_values(first), from_values(second)])
    both = from_values(first + second)
    assert (merged.counts == both.counts).all()
    again = histogram.decode(histogram.encode(merged))
    assert [again.percentile(p) for p in PERCENTS] == [both.percentile(p) for p in PERCENTS]


def test_percentiles_are_not_averaged() -> None:
    fast, slow = from_values([10**6] * 500), from_values([10**7] * 500)
    merged = histogram.merge([fast, slow])
    assert merged.percentile(99) == slow.percentile(99)
    assert merged.percentile(50) == fast.percentile(50)


def test_percentiles_use_the_nearest_rank() -> None:
    # 99 of 100 at 1 ms: p99 is still 1 ms, one more than that is 10 ms.
    values = [10**6] * 99 + [10**7]
    assert from_values(values).percentile(99) == from_values([10**6]).max()
    assert from_values(values).percentile(99.1) == from_values([10**7]).max()


@pytest.mark.parametrize("blob", ["", "HISTF", "garbage", "AAAA"])
def test_garbage_is_refused(blob: str) -> None:
    with pytest.raises(HistogramError):
        histogram.decode(blob)


def test_values_out_of_bounds_are_refused() -> None:
    for value in (0, -1, histogram.HIGHEST_NS + 1):
        with pytest.raises(HistogramError):
            from_values([value])
