"""Open loops: was the schedule held, and how late was the load generator itself?"""

import msgspec

from cachemark.analysis.verdict.trial_verdict import invalid_finding, limit_finding
from cachemark.analysis.verdict.withholding import (
    GENERATOR_LAG,
    Delay,
    delay_of_histogram,
    may_have_moved,
)
from cachemark.model import histogram
from cachemark.model.experiment import Load
from cachemark.model.merging import merge_kinds
from cachemark.model.outcome import Finding
from cachemark.model.protocol import Done
from cachemark.model.protocol_results import attempts_of

# An open loop held its schedule if it sent at least this part of the due operations.
_MIN_ACHIEVED = 0.99


def generator_delay(measure: Done) -> list[Delay]:
    """The delay that the client itself caused; empty if the client cannot tell.

    Waiting for a connection is the target's delay, not the generator's. A client that does not
    separate the two is given the benefit of the doubt.
    """
    own = histogram.merge_encoded([measure.generator_lag or measure.send_lag])
    if own is None or (not measure.generator_lag and measure.queued):
        return []
    return [delay_of_histogram(GENERATOR_LAG, "the client sent too late", own)]


def open_loop_findings(measure: Done, load: Load) -> list[Finding]:
    """Findings about a client that reports no lag (INVALID), or a load that was too high."""
    findings = overload_findings(measure, load)
    if histogram.merge_encoded([measure.generator_lag or measure.send_lag]) is None:
        findings.append(invalid_finding("no-lag", "the worker did not report its send lag"))
    return findings


def response_percentile_ns(measure: Done, percent: float) -> int:
    """A percentile of the response times of all kinds together; 0 if there are none."""
    merged = histogram.merge_encoded(op.response for op in measure.operations.values())
    return merged.percentile(percent) if merged else 0


def overload_findings(measure: Done, load: Load) -> list[Finding]:
    """Operations that were never sent, or a backlog that grew.

    An operation that was sent and failed held the schedule: its wait is in the response times.
    """
    sent = attempts_of(measure.operations)
    due = sent + measure.unsent
    if due and sent / due < _MIN_ACHIEVED:
        return [_overload_finding(f"only {sent} of {due} due operations were sent", sent / due)]
    if load.rate is None or not measure.elapsed_ns:
        return []
    planned_ns = due / load.rate * 1e9
    over_ns = measure.elapsed_ns - planned_ns
    # A backlog that grows evenly to this makes the median half of it; a few slow operations at
    # the end do not move the median.
    if (
        over_ns > (1 - _MIN_ACHIEVED) * planned_ns
        and response_percentile_ns(measure, 50) > over_ns / 4
    ):
        rate = sent / measure.elapsed_ns * 1e9
        text = f"the backlog grew: {load.rate:.0f}/s were due and {rate:.0f}/s ended"
        return [_overload_finding(text, rate / load.rate)]
    return []


def _overload_finding(text: str, achieved: float) -> Finding:
    return limit_finding(
        "achieved", text, achieved, _MIN_ACHIEVED, "of what was due", weight="OVERLOAD"
    )


LOAD_MISSED = "load-missed"
# The generators' own lag is judged at their median: it then delays most of the load.
_MEDIAN = 50.0


def with_generated(measure: Done, generated: Done | None) -> Done:
    """The counts of the measuring client and of the generators: what the server has counted."""
    if generated is None:
        return measure
    return msgspec.structs.replace(
        measure,
        operations=merge_kinds([measure.operations, generated.operations]),
        reconnects=measure.reconnects + generated.reconnects,
        renewed=measure.renewed + generated.renewed,
    )


def generated_findings(generated: Done | None, load: Load | None) -> list[Finding]:
    """OVERLOAD where the generators missed the rate of their load; a closed loop has none."""
    if generated is None or load is None or load.schedule == "closed":
        return []
    why = "; the generators themselves were late" if generators_were_late(generated) else ""
    return [
        msgspec.structs.replace(
            found, rule=LOAD_MISSED, text=f"the load missed its rate: {found.text}{why}"
        )
        for found in overload_findings(generated, load)
    ]


def generators_were_late(generated: Done) -> bool:
    """Whether the generators themselves, not the server, held the load up."""
    return any(may_have_moved(generated, _MEDIAN, delay) for delay in generator_delay(generated))
