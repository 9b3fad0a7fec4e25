"""Statistics over trials. The only user of SciPy; import it late, as it takes a second."""

from cachemark.statistics.comparison import Answer, Comparison, Metric, against_itself, compare
from cachemark.statistics.contrast import Contrast, Outlook, decide, of_values, paired, unpaired
from cachemark.statistics.curve import Point
from cachemark.statistics.decision import holm, side
from cachemark.statistics.figures import (
    FIGURES,
    Figure,
    figures_of,
    least_sample,
    ok,
    rate,
    response_ns,
)
from cachemark.statistics.interval import (
    Interval,
    geometric,
    independent_ratio,
    mean_error,
    paired_ratio,
)
from cachemark.statistics.precision import MOST, pairs_for, trials_for
from cachemark.statistics.summary import PERCENTILES, CellSummary, KindSummary, Times, summarise
from cachemark.statistics.within import Within, least_section, sectioned, within

__all__ = [
    "FIGURES",
    "MOST",
    "PERCENTILES",
    "Answer",
    "CellSummary",
    "Comparison",
    "Contrast",
    "Figure",
    "Interval",
    "KindSummary",
    "Metric",
    "Outlook",
    "Point",
    "Times",
    "Within",
    "against_itself",
    "compare",
    "decide",
    "figures_of",
    "geometric",
    "holm",
    "independent_ratio",
    "least_sample",
    "least_section",
    "mean_error",
    "of_values",
    "ok",
    "paired",
    "paired_ratio",
    "pairs_for",
    "rate",
    "response_ns",
    "sectioned",
    "side",
    "summarise",
    "trials_for",
    "unpaired",
    "within",
]
