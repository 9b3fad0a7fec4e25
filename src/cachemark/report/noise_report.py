"""Disturbances of a run: noise, changes within windows, and withheld figures."""

from collections import Counter
from collections.abc import Sequence
from statistics import median

from cachemark.analysis.number_format import time
from cachemark.analysis.verdict import TAPE_REPEATED
from cachemark.analysis.verdict.stationarity import STATIONARITY_RULES
from cachemark.model.outcome import Cell, Finding, LagBound, Outcome
from cachemark.report.cells import cell_title

# Smaller parts of a percentile are below the width of a histogram's bucket or two.
_TOLD_PART = 0.01
# Below it, other programs leave a CPU of two free for most of the time.
_LOADED_PERCENT = 20.0
_LONG_PAUSE = "long-pause"


def noise_notes(outcomes: Sequence[Outcome]) -> list[str]:
    """One line for each noise rule that was violated: the number of trials, and the worst one."""
    measured = [outcome for outcome in outcomes if outcome.state == "measured"]
    by_rule: dict[str, list[Finding]] = {}
    for outcome in measured:
        for finding in outcome.findings:
            if finding.weight == "noise":
                by_rule.setdefault(finding.rule, []).append(finding)
    return [_line(findings, len(measured)) for findings in by_rule.values()]


def loaded_lines(outcomes: Sequence[Outcome], *, searched: bool) -> list[str]:
    """A sentence if other programs used the machine in half of the run's trials."""
    shares = [
        outcome.noise.foreign_cpu_percent
        for outcome in outcomes
        if outcome.noise is not None and outcome.noise.foreign_cpu_percent is not None
    ]
    if not shares or median(shares) < _LOADED_PERCENT:
        return []
    if not any(outcome.verdict == "VALID" for outcome in outcomes):
        return []  # each trial has its reason, and there are no ratios
    moved = (
        "A rate that a search found is a lower bound: a quiet machine may meet the objective at "
        "higher ones"
        if searched
        else "The ratios hold for a machine that is this busy; a quiet machine may have others, "
        "beyond these intervals"
    )
    used = f"other programs used {median(shares):.0f} % of its CPUs in the median trial"
    return [f"The machine was loaded: {used}. {moved}."]


def paused_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """A sentence if trials count although a pause has moved their rate: noise is only noted."""
    valid = [outcome for outcome in outcomes if outcome.verdict == "VALID"]
    pauses = [
        finding
        for outcome in valid
        for finding in outcome.findings
        if finding.rule == _LONG_PAUSE and (finding.figure or 0) > (finding.limit or 0)
    ]
    return [_line(pauses, len(valid))] if pauses else []


def _line(findings: list[Finding], trials: int) -> str:
    worst = max(findings, key=lambda finding: finding.figure or 0.0)
    return f"Noise in {len(findings)} of {trials} trials; the worst: {worst.text}."


def stationarity_notes(outcomes: Sequence[Outcome]) -> list[str]:
    """One line for each cell with windows that were not stationary; their trials count."""
    by_cell: dict[Cell, list[str]] = {}
    for outcome in outcomes:
        texts = [
            finding.text
            for finding in outcome.findings
            if finding.weight == "note" and finding.rule in STATIONARITY_RULES
        ]
        if texts:
            by_cell.setdefault(outcome.trial.cell, []).append(texts[0])
    played = Counter(outcome.trial.cell for outcome in outcomes)
    return [
        f"{cell_title(cell)}: not stationary in {len(texts)} of {played[cell]} trials, which "
        f"count; such as: {texts[0]}."
        for cell, texts in by_cell.items()
    ]


def withheld_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """One line for each figure that is withheld in some trials of a cell, with the reason."""
    by_figure: dict[tuple[Cell, str], list[str]] = {}
    for outcome in outcomes:
        if outcome.verdict != "VALID":
            continue
        texts = {finding.rule: finding.text for finding in outcome.findings}
        for each in outcome.withheld:
            figure = f"p{each.percent:g}{f' of {each.kind}' if each.kind else ''}"
            text = texts.get(each.rule, each.rule)
            by_figure.setdefault((outcome.trial.cell, figure), []).append(text)
        if TAPE_REPEATED in texts:
            key = outcome.trial.cell, "hits and misses"
            by_figure.setdefault(key, []).append(texts[TAPE_REPEATED])
    played = Counter(outcome.trial.cell for outcome in outcomes)
    return [
        f"{cell_title(cell)}: {figure} withheld in "
        f"{len(texts)} of {played[cell]} trials: {texts[0]}"
        for (cell, figure), texts in by_figure.items()
    ]


def lag_notes(outcomes: Sequence[Outcome]) -> list[str]:
    """How far the client's own lag can have moved the percentiles that are shown, by cell."""
    worst: dict[tuple[Cell, float], LagBound] = {}
    for outcome in outcomes:
        for bound in outcome.lag_bounds if outcome.verdict == "VALID" else ():
            key = outcome.trial.cell, bound.percent
            if not bound.kind and (key not in worst or _part(bound) > _part(worst[key])):
                worst[key] = bound
    cells: dict[Cell, list[LagBound]] = {}
    for (cell, _), bound in worst.items():
        cells.setdefault(cell, []).append(bound)
    return [
        f"{cell_title(cell)}: the client's own lag can have moved "
        + ", ".join(f"p{each.percent:g} by at most {time(each.moved_ns)}" for each in bounds)
        + "."
        for cell, bounds in cells.items()
        if any(_part(bound) >= _TOLD_PART for bound in bounds)
    ]


def _part(bound: LagBound) -> float:
    return bound.moved_ns / max(1, bound.ns)
