"""Figures as people read them."""

import math

from cachemark.analysis.statistics import Interval, TimeSummary
from cachemark.model.errors import UsageError
from cachemark.model.units import parse_size


def number(value: float) -> str:
    """Such as 950, 12.3 k, 1.25 M: three significant digits. A small whole number is exact."""
    for factor, suffix in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= factor * 0.9995:
            return f"{_three(value / factor)}{suffix}"
    return str(value) if isinstance(value, int) else _three(value)


def spread(text: str) -> str:
    """A number of bytes, or a range, in words; another distribution as it is written."""
    try:
        return " to ".join(f"{parse_size(end, ''):,}" for end in text.split(".."))
    except UsageError:
        return text


def hidden_by(bound: float) -> str:
    """The differences that an instrument's own error, a factor, hides."""
    below = f"differences below {100 * bound - 100:.1f} %"
    return below if bound < 2 else "even differences by a factor of 2"


def _three(value: float) -> str:
    if abs(value) >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"


def time(ns: float | None) -> str:
    """Such as 850 ns, 61.2 µs, 1.25 ms; a dash where there is none."""
    if ns is None:
        return "–"
    for factor, suffix in ((1e9, " s"), (1e6, " ms"), (1e3, " µs")):
        if ns >= factor * 0.9995:
            return f"{_three(ns / factor)}{suffix}"
    return f"{ns:.0f} ns"


def rough_time(seconds: float) -> str:
    """A planned time, such as 85 s, 7 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def percentile(of: TimeSummary, percent: float) -> str:
    """A percentile as `time` has it; `≥1.00 s` where it reaches operations that timed out."""
    bound = of.at_least.get(percent)
    return f"≥{time(bound)}" if bound is not None else time(of.percentiles[percent])


def percentile_with_error(of: TimeSummary, percent: float) -> str:
    """A percentile as `percentile` has it, with its interval or range over the trials."""
    exact = percent not in of.at_least and percent in of.intervals
    return time_with_error(of.intervals[percent]) if exact else percentile(of, percent)


def cpu_with_error(of: Interval) -> str:
    """CPU time for each operation in µs, such as `12.3 µs −2.0/+3.1 %`."""
    return f"{of.value:.1f} µs{_bounds(of)}"


# Above this factor, an interval is only called wide.
_WIDEST = 10.0


def interval(of: Interval, form: str) -> str:
    """Such as 1.35 (1.30–1.41); the value alone where it has no interval."""
    value = form.format(of.value)
    if of.low is None or of.high is None:
        return value
    low, high = of.value / _WIDEST, of.value * _WIDEST
    lower = f"<{form.format(low)}" if of.low < low else form.format(of.low)
    upper = f">{form.format(high)}" if of.high > high else form.format(of.high)
    return f"{value} ({lower}–{upper})"


def signed_interval(of: Interval, form: str) -> str:
    """Such as 0.61 (−0.52 to 2.74): of a figure that may be below 0."""
    ends = [
        form.format(at).replace("-", "−") for at in (of.value, of.low, of.high) if at is not None
    ]
    return "{} ({} to {})".format(*ends) if len(ends) == 3 else ends[0]


def rate_with_error(of: Interval) -> str:
    """A rate with its interval as a percentage, or its range: `12.3 k ±2.1 %`, `12.3 k −2/+3 %`."""
    return f"{number(of.value)}{_bounds(of)}"


def time_with_error(of: Interval) -> str:
    """A time in ns with its interval as a percentage, or its range: `61.2 µs ±2.1 %`."""
    return f"{time(of.value)}{_bounds(of)}"


def size(count: float) -> str:
    """Bytes, such as 3.22 MB."""
    return f"{number(count)}B" if count >= 999.5 else f"{number(count)} B"


def size_with_error(of: Interval) -> str:
    """Bytes with their interval as a percentage, or their range: `3.22 MB ±0.3 %`."""
    return f"{size(of.value)}{_bounds(of)}"


def microseconds(us: float) -> str:
    """Microseconds, such as 12.3 µs."""
    return time(us * 1e3)


def bounds_name(of: Interval) -> str:
    """The name of a figure's bounds."""
    return "range of the trials" if of.bounds == "range" else "95 % interval"


def _bounds(of: Interval) -> str:
    """Both ends relative to the value, ` −1.2/+14 %`; ` ±2.1 %` if an interval's are one factor."""
    if of.low is None or of.high is None or not of.value:
        return ""
    low, high = (100 * (1 - of.low / of.value), 100 * (of.high / of.value - 1))
    percent = 100 * (of.high / of.low) ** 0.5 - 100 if of.low else math.inf
    alike = math.isclose(high, percent, rel_tol=1e-3, abs_tol=0.05) or percent > 1000
    if of.bounds == "range" or not alike:
        return f" −{_two(low)}/+{_two(high)} %"
    return f" ±{percent:.1f} %" if percent <= 100 else " ±>100 %"


def _two(percent: float) -> str:
    # A bound that is the value itself may be below it by the last digit of a floating-point number.
    return f"{percent:.0f}" if percent >= 9.95 else f"{max(0.0, percent):.1f}"


def counted(count: int) -> str:
    """A number of things: 0, 950, 9999 to the last one, then as `number` has it."""
    return str(count) if count < 10_000 else number(count)


def count_of(count: int, thing: str) -> str:
    """A count with its noun, such as `1 trial` and `2 trials`."""
    return f"{count} {thing}" + ("" if count == 1 else "s")
