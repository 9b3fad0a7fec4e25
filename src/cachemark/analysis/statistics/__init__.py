"""Statistics over trials."""

from cachemark.analysis.statistics.comparison import (
    Comparison,
    ComparisonAnswer,
    Metric,
    compare,
    self_comparison,
)
from cachemark.analysis.statistics.contrast import (
    Contrast,
    ContrastAnswer,
    contrast_of_values,
    decide,
    paired,
    unpaired,
)
from cachemark.analysis.statistics.decision import classify_ratio, holm
from cachemark.analysis.statistics.figures import (
    FIGURES,
    Figure,
    figures_of,
    min_sample_size,
    ok,
    rate,
    response_ns,
)
from cachemark.analysis.statistics.interval import (
    CONFIDENCE,
    Interval,
    geometric_mean,
    mean_half_width,
    paired_ratio,
    unpaired_ratio,
)
from cachemark.analysis.statistics.order_statistics import median_interval
from cachemark.analysis.statistics.percentile_curve import CurvePoint
from cachemark.analysis.statistics.quantiles import chi2_quantile, t_quantile, two_sided_p
from cachemark.analysis.statistics.sample_size import MAX_TRIALS, pairs_needed, trials_needed
from cachemark.analysis.statistics.summary import (
    PERCENTILES,
    CellSummary,
    KindSummary,
    TimeSummary,
    summarise,
)
from cachemark.analysis.statistics.within_trial import (
    WithinTrial,
    min_section_size,
    sectioning_interval,
    within,
)

__all__ = [
    "CONFIDENCE",
    "FIGURES",
    "MAX_TRIALS",
    "PERCENTILES",
    "CellSummary",
    "Comparison",
    "ComparisonAnswer",
    "Contrast",
    "ContrastAnswer",
    "CurvePoint",
    "Figure",
    "Interval",
    "KindSummary",
    "Metric",
    "TimeSummary",
    "WithinTrial",
    "chi2_quantile",
    "classify_ratio",
    "compare",
    "contrast_of_values",
    "decide",
    "figures_of",
    "geometric_mean",
    "holm",
    "mean_half_width",
    "median_interval",
    "min_sample_size",
    "min_section_size",
    "ok",
    "paired",
    "paired_ratio",
    "pairs_needed",
    "rate",
    "response_ns",
    "sectioning_interval",
    "self_comparison",
    "summarise",
    "t_quantile",
    "trials_needed",
    "two_sided_p",
    "unpaired",
    "unpaired_ratio",
    "within",
]
