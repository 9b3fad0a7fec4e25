"""The gate of a comparison: does a build pass? Pure.

Each gated figure is tested by itself, so other figures cannot hide that it is worse.
"""

from typing import Literal

from cachemark.analysis.number_format import count_of
from cachemark.analysis.statistics import FIGURES, Comparison
from cachemark.model.errors import UsageError
from cachemark.report.compare.model import ComparisonReport, ComparisonRow, Gate

GateAnswer = Literal["passed", "failed", "inconclusive"]


def gate_answer(compared: ComparisonReport) -> GateAnswer:
    """`failed`: something is worse or missing. `inconclusive`: only if the gate asks for it."""
    comparisons = [comparison for _, comparison in gated(compared)]
    if compared.lost_cells or any(of.answer == "worse" or of.lost for of in comparisons):
        return "failed"
    strict = compared.gate is not None and compared.gate.fail_on_inconclusive
    if strict and (compared.left_out_cells or any(map(is_open, comparisons))):
        return "inconclusive"
    return "passed"


def check_gate(compared: ComparisonReport, gate: Gate) -> None:
    """Raise UsageError if no cell has a figure that the gate names: it would always pass."""
    known = {of.figure for row in compared.rows for of in row.comparisons if of.ratio or of.lost}
    for name in gate.figures:
        if compared.rows and name not in known:
            raise UsageError(
                f"--gate {name}: no cell has this figure on both sides",
                f"there are {', '.join(sorted(known))}" if known else "play longer windows",
            )


def gated(compared: ComparisonReport) -> list[tuple[ComparisonRow, Comparison]]:
    """The comparisons that decide; without a gate, all of them."""
    names = (compared.gate or Gate()).figures
    return [
        (row, of)
        for row in compared.rows
        for of in row.comparisons
        if not names or of.figure in names
    ]


def is_open(of: Comparison) -> bool:
    """Whether a comparison shows neither a difference nor equality."""
    return of.answer == "open" and not of.lost


def is_not_worse(of: Comparison, margin_percent: float) -> bool:
    """Whether it is shown that the first is not worse by more than the margin (not inferior).

    As for equality, the instrument's own error must be within the margin, too.
    """
    ratio, most = of.ratio, 1 + margin_percent / 100
    if ratio is None or ratio.low is None or ratio.high is None or of.scope == "within":
        return False
    if of.answer != "better" and of.bound > most:
        return False
    if FIGURES[of.figure].more_is_better:
        return ratio.low * most >= 1
    return ratio.high <= most


def gate_line(compared: ComparisonReport) -> str:
    """The gate's answer in a sentence; empty if no gate was asked for."""
    if compared.gate is None:
        return ""
    decisive = gated(compared)
    names = ", ".join(dict.fromkeys(FIGURES[of.figure].title for _, of in decisive))
    worse = sum(of.answer == "worse" for _, of in decisive)
    lost = sum(of.lost for _, of in decisive) + len(compared.lost_cells)
    unsettled = sum(is_open(of) for _, of in decisive) + len(compared.left_out_cells)
    counts = [
        text
        for count, text in (
            (worse, f"{worse} worse"),
            (lost, f"{lost} missing"),
            (unsettled, f"{unsettled} not settled"),
        )
        if count
    ]
    tested = f"{count_of(len(decisive), 'ratio')} of {names}, each figure tested by itself"
    tested = tested if decisive else "no ratio"
    return f"Gate {gate_answer(compared)}: {tested}" + (f": {', '.join(counts)}" if counts else "")
