"""Statistics over trials. The only user of SciPy; import it late, as it takes a second."""

from cachemark.analysis.statistics.comparison import (
    Answer,
    Comparison,
    Metric,
    against_itself,
    compare,
)
from cachemark.analysis.statistics.contrast import (
    Contrast,
    Outlook,
    decide,
    of_values,
    paired,
    unpaired,
)
from cachemark.analysis.statistics.decision import holm, side
from cachemark.analysis.statistics.figures import (
    FIGURES,
    Figure,
    figures_of,
    least_sample,
    ok,
    rate,
    response_ns,
)
from cachemark.analysis.statistics.interval import (
    Interval,
    geometric,
    independent_ratio,
    mean_error,
    paired_ratio,
)
from cachemark.analysis.statistics.percentile_curve import Point
from cachemark.analysis.statistics.sample_size import MOST, pairs_for, trials_for
from cachemark.analysis.statistics.summary import (
    PERCENTILES,
    CellSummary,
    KindSummary,
    Times,
    summarise,
)
from cachemark.analysis.statistics.within_trial import Within, least_section, sectioned, within

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
