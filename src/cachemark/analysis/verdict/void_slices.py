"""Slices of a sitting that are void, and their effect on an arm. Pure.

A slice is void if two hosts may have started it more than SKEW_LIMIT_NS apart, or if client or
server was stopped or the machine paused in it. The workers have counted its operations by then, and
their histograms have its times. So the rate is that of the other slices. A percentile is shown if
the times of the void slices cannot have moved it too far, whatever they were.
"""

import math

from cachemark.analysis.verdict.trial_verdict import limit_finding
from cachemark.analysis.verdict.withholding import Judged, limit_ns, supported, times_by_kind
from cachemark.model.histogram import Histogram
from cachemark.model.outcome import Withheld
from cachemark.model.protocol import Done
from cachemark.model.rounds import SKEW_LIMIT_NS, Rounds
from cachemark.model.units import plain

# With more void slices than this part, their cause has chosen which slices count.
_VOID_PART = 0.1
VOID_SLICES = "void-slices"


def judge_void(measure: Done, rounds: Rounds) -> Judged:
    """Judges the void slices of an arm: names them; too many make it INVALID."""
    if not rounds.void_slices:
        return Judged()
    withheld = _withheld(measure, rounds.void_ops)
    names = [_name(each) for each in sorted(withheld, key=lambda each: (each.kind, each.percent))]
    gone = f"; withheld: {', '.join(names)}" if names else ""
    planned = rounds.void_slices + len(rounds.slices.ops)
    too_many = rounds.void_slices > _VOID_PART * planned
    weight = "INVALID" if too_many else "withheld" if withheld else "note"
    paused, apart = rounds.paused_slices, rounds.void_slices - rounds.paused_slices
    limit = _VOID_PART * planned
    skewed = f"{apart} of {planned} slices are void: hosts may have started them more than "
    skewed += f"{SKEW_LIMIT_NS / 1e6:g} ms apart{gone}"
    stopped = f"{paused} of {planned} slices are void: client or server was stopped or the "
    stopped += f"machine paused in them, for {plain(rounds.paused_ns / 1e9)} s in all{gone}"
    findings = [
        limit_finding("void-slices", skewed, apart, limit, "slices", weight=weight),
        limit_finding("long-pause", stopped, paused, limit, "slices", weight=weight),
    ]
    return Judged(findings=[each for each in findings if each.figure], withheld=withheld)


def _name(of: Withheld) -> str:
    return f"p{of.percent:g} of {of.kind}" if of.kind else f"p{of.percent:g}"


def _withheld(measure: Done, void_ops: int) -> list[Withheld]:
    """The percentiles that the times of void slices can have moved too far."""
    moved = [
        (kind, percent, times.percentile(percent), moved_by_others_ns(times, percent, void_ops))
        for kind, times in times_by_kind(measure).items()
        for percent in supported(times)
    ]
    return [
        Withheld(
            kind=kind,
            percent=percent,
            rule=VOID_SLICES,
            ns=ns,
            moved_ns=by_ns,
            limit_ns=limit_ns(ns),
        )
        for kind, percent, ns, by_ns in moved
        if by_ns > limit_ns(ns)
    ]


def moved_by_others_ns(times: Histogram, percent: float, others: int) -> int:
    """How far a percentile can be from that of a part of these times.

    The part is all but `others` of them, it is not known which. If these were all below, the
    percentile of the part has the highest rank that is possible here; if all above, the lowest.
    """
    others = min(others, times.count)
    rank = max(1, math.ceil(percent / 100 * (times.count - others) * (1 - 1e-12)))
    shown_ns = times.percentile(percent)
    low_ns, high_ns = times.at_rank(rank), times.at_rank(min(times.count, rank + others))
    return max(shown_ns - low_ns, high_ns - shown_ns)
