"""Statistics over trials. The only user of SciPy; import it late, as it takes a second."""

from cachemark.statistics.comparison import Answer, Comparison, compare, holm
from cachemark.statistics.interval import Interval, geometric, paired_ratio
from cachemark.statistics.summary import CellSummary, KindSummary, least_sample, summarise

__all__ = [
    "Answer",
    "CellSummary",
    "Comparison",
    "Interval",
    "KindSummary",
    "compare",
    "geometric",
    "holm",
    "least_sample",
    "paired_ratio",
    "summarise",
]
