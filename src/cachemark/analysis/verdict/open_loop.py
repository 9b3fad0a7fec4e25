"""Open loops: was the schedule held, and if not, was it the client or the server?"""

from __future__ import annotations

from cachemark.analysis.verdict.trial_verdict import invalid_finding
from cachemark.model import histogram
from cachemark.model.experiment import Load
from cachemark.model.outcome import Finding
from cachemark.model.protocol import Done

# An open loop held its schedule if it did at least this part of the due operations.
_LEAST_ACHIEVED = 0.99
# The limit of the generator's own delay: this share of the reported time, or this long.
_LAG_SHARE = 0.05
_LAG_FLOOR_NS = 100_000


def open_loop_findings(measure: Done, load: Load) -> list[Finding]:
    """Findings about a late client (INVALID) or a load that was too high (OVERLOAD)."""
    return [*_send_lag_findings(measure), *_overload_findings(measure, load)]


def response_percentile_ns(measure: Done, percent: float) -> int:
    """The largest percentile of the response time of any kind; 0 if there is none."""
    kinds = [histogram.merge_encoded([op.response]) for op in measure.operations.values()]
    return max((of.percentile(percent) for of in kinds if of), default=0)


def _send_lag_findings(measure: Done) -> list[Finding]:
    """The client's own delay must be small compared with the times that it reports."""
    own = histogram.merge_encoded([measure.generator_lag or measure.send_lag])
    if own is None:
        return [invalid_finding("no-lag", "the worker did not report its send lag")]
    lag_ns = own.percentile(99.9)
    limit_ns = max(_LAG_FLOOR_NS, _LAG_SHARE * response_percentile_ns(measure, 99.9))
    # Waiting for a connection is the target's delay, not the generator's: it is noted as such. A
    # client that does not tell the two apart is given the benefit of the doubt.
    if lag_ns > limit_ns and (measure.generator_lag or not measure.queued):
        text = (
            f"the client sent too late: send lag p99.9 {lag_ns / 1e3:.0f} µs, allowed "
            f"{limit_ns / 1e3:.0f} µs"
        )
        return [
            Finding(
                rule="send-lag",
                weight="INVALID",
                text=text,
                figure=lag_ns,
                limit=limit_ns,
                unit="ns",
            )
        ]
    return []


def _overload_findings(measure: Done, load: Load) -> list[Finding]:
    due = sum(op.attempts for op in measure.operations.values()) + measure.unsent
    done = sum(op.ok for op in measure.operations.values())
    if due and done / due < _LEAST_ACHIEVED:
        return [_overload_finding(f"only {done} of {due} due operations were done", done / due)]
    if load.rate is None or not measure.elapsed_ns:
        return []
    planned_ns = due / load.rate * 1e9
    over_ns = measure.elapsed_ns - planned_ns
    # A backlog that grows evenly to this makes the median half of it; a few slow operations at
    # the end do not move the median.
    if (
        over_ns > (1 - _LEAST_ACHIEVED) * planned_ns
        and response_percentile_ns(measure, 50) > over_ns / 4
    ):
        rate = done / measure.elapsed_ns * 1e9
        text = f"the backlog grew: {load.rate:.0f}/s were due and {rate:.0f}/s were done"
        return [_overload_finding(text, rate / load.rate)]
    return []


def _overload_finding(text: str, achieved: float) -> Finding:
    return Finding(
        rule="achieved",
        weight="OVERLOAD",
        text=text,
        figure=achieved,
        limit=_LEAST_ACHIEVED,
        unit="of what was due",
    )
