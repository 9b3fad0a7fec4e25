"""What the machine did to a run: noise by rule, trials that were not level, the A/A arm."""

from __future__ import annotations

from collections.abc import Sequence

from cachemark.outcome import Finding, Outcome
from cachemark.report.format import interval
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
    """What the client that was played twice says of each group; a difference there is false."""
    lines: list[str] = []
    for group in groups:
        if group.itself is None:
            continue
        place = f"{group.workload}, {group.load}, {group.server}"
        ratio = interval(group.itself.ratio, "{:.3f}")
        false = group.itself.answer in ("faster", "slower")
        means = (
            "a false difference: no comparison here can be trusted"
            if false
            else "no false difference"
        )
        lines.append(f"A/A, {place}: {group.itself.baseline} against itself is {ratio}, {means}.")
    return lines
