"""What the machine did to a run: noise by rule, trials that were not level, the A/A arm."""

from __future__ import annotations

from collections.abc import Sequence

from cachemark.analysis.number_format import interval
from cachemark.model.outcome import Finding, Outcome
from cachemark.report.value import Group


def notes(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each rule that noise broke: in how many trials, and how far at the most."""
    measured = [outcome for outcome in outcomes if outcome.state == "measured"]
    by_rule: dict[str, list[Finding]] = {}
    for outcome in measured:
        for finding in outcome.findings:
            if finding.weight == "noise":
                by_rule.setdefault(finding.rule, []).append(finding)
    return [_line(found, len(measured)) for found in by_rule.values()]


def _line(found: list[Finding], trials: int) -> str:
    worst = max(found, key=lambda finding: finding.figure or 0.0)
    return f"Noise in {len(found)} of {trials} trials; the worst: {worst.text}."


def against_themselves(groups: Sequence[Group]) -> list[str]:
    """Groups whose client that was played twice differs from itself: that is false."""
    lines: list[str] = []
    for group in groups:
        if group.itself is None or group.itself.answer not in ("faster", "slower"):
            continue
        place = f"{group.workload}, {group.load}, {group.server}"
        ratio = interval(group.itself.ratio, "{:.3f}")
        lines.append(
            f"A/A, {place}: {group.itself.baseline} against itself is {ratio}, a false difference: "
            "no comparison here can be trusted."
        )
    return lines
