"""Statistics over trials. The only user of SciPy; import it late, as it takes a second."""

from cachemark.statistics.comparison import Answer, Comparison, Metric, compare, holm
from cachemark.statistics.curve import Point
from cachemark.statistics.figures import least_sample, ok, rate, response_ns
from cachemark.statistics.interval import (
    Interval,
    geometric,
    independent_ratio,
    mean_error,
    paired_ratio,
)
from cachemark.statistics.summary import PERCENTILES, CellSummary, KindSummary, summarise

__all__ = [
    "PERCENTILES",
    "Answer",
    "CellSummary",
    "Comparison",
    "Interval",
    "KindSummary",
    "Metric",
    "Point",
    "compare",
    "geometric",
    "holm",
    "independent_ratio",
    "least_sample",
    "mean_error",
    "ok",
    "paired_ratio",
    "rate",
    "response_ns",
    "summarise",
]
