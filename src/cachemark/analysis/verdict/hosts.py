"""Trials over several hosts: clocks that jump, starts at different times, unlike hosts."""

from collections.abc import Mapping, Sequence
from statistics import median

from cachemark.analysis.verdict.trial_verdict import limit_finding
from cachemark.model import histogram
from cachemark.model.outcome import Finding, HostPart
from cachemark.model.protocol import Done

# A clock that is slewed changes by this part of the time at most; more is a jump.
_SLEW_PART = 0.0005
_JUMP_NS = 1_000_000
# Hosts that start at different times play less of the window together.
_SKEW_NOTE_NS = 1_000_000
_SKEW_PART = 0.01
# Hosts that play alike parts of one tape differ by less than this.
_ALIKE_FACTOR = 1.25


def skew_finding(skew_ns: int, window_ns: int) -> list[Finding]:
    """Above 1 ms it is noted; above 1 % of the window the trial is INVALID."""
    if skew_ns <= _SKEW_NOTE_NS:
        return []
    limit_ns = window_ns * _SKEW_PART
    weight = "INVALID" if skew_ns > limit_ns else "note"
    text = f"the hosts started up to {skew_ns / 1e6:.1f} ms apart"
    return [limit_finding("start-skew", text, skew_ns / 1e6, limit_ns / 1e6, "ms", weight=weight)]


def clock_findings(
    hosts: Sequence[HostPart], trial_ns: int, later_errors_ns: Mapping[str, int]
) -> list[Finding]:
    """Clocks that moved against the coordinator's by more than slewing can explain.

    `later_errors_ns`: errors of the second comparison, by host.
    """
    findings: list[Finding] = []
    for part in hosts:
        errors_ns = part.clock_error_ns + later_errors_ns[part.name]
        limit_ns = _JUMP_NS + errors_ns + _SLEW_PART * trial_ns
        if abs(part.clock_moved_ns) > limit_ns:
            text = f"the clock of {part.name} moved by {part.clock_moved_ns / 1e6:+.1f} ms "
            text += "against the coordinator's"
            moved_ms = abs(part.clock_moved_ns) / 1e6
            findings.append(limit_finding("clock-jump", text, moved_ms, limit_ns / 1e6, "ms"))
    return findings


def differing_hosts(hosts: Sequence[HostPart]) -> list[Finding]:
    """Hosts of clients whose rate or median response time is unlike that of the others: notes."""
    measured = {part.name: part.measure for part in hosts if part.measure is not None}
    if len(measured) < 2:
        return []
    rates = {name: _rate(done) for name, done in measured.items()}
    times = {name: _median_response_us(done) for name, done in measured.items()}
    return [
        *_unlike("ops/s", rates),
        *_unlike("µs median response time", {n: us for n, us in times.items() if us is not None}),
    ]


def _unlike(unit: str, figures: Mapping[str, float]) -> list[Finding]:
    """Each host whose figure is not within a factor of the median of the other hosts' figures."""
    findings: list[Finding] = []
    for name, figure in figures.items():
        others = [value for other, value in figures.items() if other != name]
        usual = median(others) if others else figure
        low, high = sorted((figure, usual))
        if high > low * _ALIKE_FACTOR:
            text = f"{name}: {figure:,.0f} {unit}, the other hosts {usual:,.0f}"
            findings.append(limit_finding("host-differs", text, figure, usual, unit, weight="note"))
    return findings


def _rate(done: Done) -> float:
    ok = sum(operation.ok for operation in done.operations.values())
    return ok * 1e9 / max(1, done.elapsed_ns)


def _median_response_us(done: Done) -> float | None:
    times = histogram.merge_encoded(operation.response for operation in done.operations.values())
    return times.percentile(50) / 1e3 if times else None
