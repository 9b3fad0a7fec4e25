"""Which percentiles of an open loop are shown, when something else may have delayed operations.

A late load generator, or a machine that stole time, delays some operations by some time. It is not
known which ones. But if at most k operations were delayed by more than t, then without that delay
the time of rank r was at least the measured time of rank r − k, less t. The best such bound says by
how much a percentile can have moved. Percentiles that cannot have moved by more than the tolerance
are shown; the others are withheld. The bound assumes that delayed operations delay no others.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from cachemark.analysis.percentiles import PERCENTILES, min_sample_size
from cachemark.model import histogram
from cachemark.model.histogram import Histogram
from cachemark.model.outcome import Finding, LagBound, Withheld
from cachemark.model.protocol import Done
from cachemark.model.protocol_results import attempts_of
from cachemark.model.units import plain

# The tolerance: this share of the percentile, or this long.
_SHARE = 0.05
_FLOOR_NS = 100_000
GENERATOR_LAG = "send-lag"


class Delay(msgspec.Struct, frozen=True, kw_only=True):
    """Something that delayed operations: at most `counts[i]` of them by more than `over_ns[i]`.

    the finding has this `rule` and `text`.
    """

    rule: str
    text: str
    over_ns: tuple[int, ...]
    counts: tuple[int, ...]


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """The withheld percentiles, the findings with the reasons, and bounds for shown percentiles."""

    findings: list[Finding] = []
    withheld: list[Withheld] = []
    lag_bounds: list[LagBound] = []


def delay_of_histogram(rule: str, text: str, delays: Histogram) -> Delay:
    """A delay of which the whole distribution is known."""
    used = np.flatnonzero(delays.counts)
    above = delays.count - np.cumsum(delays.counts[used])
    over_ns = [histogram.bucket_highest_ns(int(bucket)) for bucket in used]
    return Delay(rule=rule, text=text, over_ns=tuple(over_ns), counts=tuple(map(int, above)))


def delay_of_share(
    rule: str, text: str, measure: Done, share: float, longest_ns: int | None = None
) -> Delay:
    """A disturbance that took a share of the window's time, so that operations due then waited.

    `longest_ns`: no operation waited longer for it.
    """
    operations = attempts_of(measure.operations)
    touched = int(np.ceil(min(1.0, share) * (operations + measure.unsent)))
    limits = [(0, touched), *([(longest_ns, 0)] if longest_ns is not None else [])]
    over_ns, counts = zip(*limits, strict=True)
    return Delay(rule=rule, text=text, over_ns=over_ns, counts=counts)


def withhold(measure: Done, delays: Sequence[Delay]) -> Judged:
    """Judge each percentile that is reported, of all kinds of operations and of each kind."""
    times = times_by_kind(measure)
    moved = {
        (delay.rule, kind, percent): moved_ns(merged, percent, delay)
        for delay in delays
        for kind, merged in times.items()
        for percent in supported(merged)
    }
    withheld = [
        Withheld(
            kind=kind, percent=percent, rule=rule, ns=ns, moved_ns=by_ns, limit_ns=limit_ns(ns)
        )
        for (rule, kind, percent), by_ns in moved.items()
        if by_ns > limit_ns(ns := times[kind].percentile(percent))
    ]
    gone = {(each.kind, each.percent) for each in withheld}
    return Judged(
        findings=[finding for delay in delays for finding in _findings(delay, withheld, times)],
        withheld=withheld,
        lag_bounds=[
            LagBound(kind=kind, percent=percent, ns=times[kind].percentile(percent), moved_ns=by_ns)
            for (rule, kind, percent), by_ns in moved.items()
            if rule == GENERATOR_LAG and (kind, percent) not in gone
        ],
    )


def may_have_moved(measure: Done, percent: float, delay: Delay) -> bool:
    """Whether a delay can have moved a percentile of all operations too far."""
    times = times_by_kind(measure).get("")
    return times is not None and (
        moved_ns(times, percent, delay) > limit_ns(times.percentile(percent))
    )


def moved_ns(times: Histogram, percent: float, delay: Delay) -> int:
    """By how much a delay can have raised a percentile, at most."""
    rank, measured_ns = times.rank(percent), times.percentile(percent)
    ends: NDArray[np.int64] = np.cumsum(times.counts)
    least_ns = 0
    for over_ns, count in zip(delay.over_ns, delay.counts, strict=True):
        if rank > count:
            bucket = int(np.searchsorted(ends, rank - count))
            least_ns = max(least_ns, histogram.bucket_highest_ns(bucket) - over_ns)
    return measured_ns - min(measured_ns, least_ns)


def times_by_kind(measure: Done) -> dict[str, Histogram]:
    """The response times of all kinds together, and of each kind if there are several."""
    kinds = {
        kind: merged
        for kind, operation in measure.operations.items()
        if (merged := histogram.merge_encoded([operation.response])) is not None
    }
    if not kinds:
        return {}
    whole = {"": histogram.merge(list(kinds.values()))}
    return {**whole, **kinds} if len(kinds) > 1 else whole


def supported(times: Histogram) -> list[float]:
    """The percentiles for which there are enough operations."""
    return [percent for percent in PERCENTILES if times.count >= min_sample_size(percent)]


def limit_ns(percentile_ns: int) -> int:
    """How far a percentile that is shown may have moved."""
    return round(max(_FLOOR_NS, _SHARE * percentile_ns))


def _findings(
    delay: Delay, withheld: Iterable[Withheld], times: Mapping[str, Histogram]
) -> list[Finding]:
    """INVALID if no percentile of all kinds together is left, otherwise which are withheld."""
    own = [each for each in withheld if each.rule == delay.rule]
    if not own:
        return []
    whole = [each for each in own if not each.kind]
    nothing_left = len(whole) == len(supported(times[""]))
    worst = max(whole or own, key=lambda each: each.moved_ns / each.limit_ns)
    what = f"p{worst.percent:g}{f' of {worst.kind}' if worst.kind else ''}"
    return [
        Finding(
            rule=delay.rule,
            weight="INVALID" if nothing_left else "withheld",
            text=f"{delay.text}: it can have moved {what} by {plain(worst.moved_ns / 1e6)} ms, "
            f"allowed {plain(worst.limit_ns / 1e6)} ms",
            figure=worst.moved_ns,
            limit=worst.limit_ns,
            unit="ns",
        )
    ]
