"""Statistics over trials. The only user of SciPy; import it late, as it takes a second."""

from cachemark.statistics.comparison import Answer, Comparison, Metric, compare, holm
from cachemark.statistics.curve import Point
from cachemark.statistics.figures import least_sample, rate
from cachemark.statistics.interval import Interval, geometric, paired_ratio
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
    "least_sample",
    "paired_ratio",
    "rate",
    "summarise",
]
