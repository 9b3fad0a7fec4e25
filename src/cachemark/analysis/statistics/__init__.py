"""Statistics over trials."""

from cachemark.analysis.percentiles import PERCENTILES, min_sample_size
from cachemark.analysis.statistics.comparison import Comparison, Scope, Unit
from cachemark.analysis.statistics.decision import ALPHA, Answer, classify, holm
from cachemark.analysis.statistics.figures import (
    FIGURES,
    Figure,
    FigureName,
    answered,
    answered_rate,
    counted_slices,
    cpu_parts_us,
    ends_by_time,
    figures_of,
    kind_rate,
    ok,
    rate,
    response_ns,
    showing,
    success_share,
    trial_response_ns,
    window_rate,
    withholds,
)
from cachemark.analysis.statistics.interval import (
    CONFIDENCE,
    MIN_INTERVAL_TRIALS,
    RESOLUTION,
    Interval,
    absolute_figure,
    geometric_mean,
    mean_half_width,
    median_interval,
    rounding_deviation,
    t_interval,
)
from cachemark.analysis.statistics.over_trials import over_trials
from cachemark.analysis.statistics.percentile_ratio import Reach, percentile_reach
from cachemark.analysis.statistics.pooled_times import (
    PooledPercentile,
    TrialTimes,
    pooled_percentile,
)
from cachemark.analysis.statistics.quantiles import t_cdf, t_quantile, two_sided_p
from cachemark.analysis.statistics.summary import (
    CellSummary,
    KindSummary,
    TimeSummary,
    evictions,
    group_operations,
    rejections,
    sum_if_known,
    summarise,
    trials_of_cells,
)
from cachemark.analysis.statistics.within_trial import WithinTrial, min_section_size, within
