"""Disturbances of a run: noise by rule, and differences between the arms of the A/A test."""

from __future__ import annotations

from collections.abc import Sequence

from cachemark.analysis.number_format import interval
from cachemark.model.outcome import Finding, Outcome
from cachemark.report.model import Group


def noise_notes(outcomes: Sequence[Outcome]) -> list[str]:
    """One line for each noise rule that was violated: the number of trials, and the worst one."""
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


def self_comparison_notes(groups: Sequence[Group]) -> list[str]:
    """A note for each group in which the A/A test found a (false) difference."""
    lines: list[str] = []
    for group in groups:
        if group.itself is None or group.itself.answer not in ("faster", "slower"):
            continue
        place = f"{group.workload}, {group.load}, {group.server}"
        ratio = interval(group.itself.ratio, "{:.3f}")
        lines.append(
            f"A/A test, {place}: the ratio of {group.itself.baseline} to itself is {ratio}. "
            "It should be 1, so no comparison of this group can be trusted."
        )
    return lines
