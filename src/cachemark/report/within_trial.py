"""Intervals within one trial, for cells that have only one valid trial."""

from collections.abc import Sequence

from cachemark.analysis.number_format import rate_with_error, time_with_error
from cachemark.analysis.statistics import PERCENTILES, CellSummary, WithinTrial, min_section_size
from cachemark.report.model import Section


def sections(summaries: Sequence[CellSummary]) -> list[Section]:
    """One row for each such cell whose client records sections; empty if there are none."""
    single = [(s, s.within) for s in summaries if s.within is not None]
    shown = [(s, within) for s, within in single if not within.why]
    if not shown:
        return []
    without = [f"{s.cell.client}: {within.why}" for s, within in single if within.why]
    return [
        Section(
            title="Within one trial",
            topic="within",
            columns=["client", "server", "workload", "load", "ops/s",
                     *[f"p{percent:g}" for percent in PERCENTILES]],
            rows=[_row(summary, within) for summary, within in shown],
            notes=[
                "± is the interval within one trial, from its ten sections. It does not "
                "include the variation from trial to trial, so do not compare cells by it. "
                "Intervals over trials need two or more blocks (--blocks).",
                *_lacking(shown),
                *dict.fromkeys(without),
            ],
        )
    ]  # fmt: skip


def _row(summary: CellSummary, of: WithinTrial) -> list[str]:
    cell = summary.cell
    times = [of.percentiles_ns.get(percent) for percent in PERCENTILES]
    return [
        cell.client,
        cell.server,
        cell.workload,
        cell.load,
        "–" if of.ops_per_s is None else rate_with_error(of.ops_per_s),
        *["–" if time is None else time_with_error(time) for time in times],
    ]


def _lacking(shown: Sequence[tuple[CellSummary, WithinTrial]]) -> list[str]:
    """Notes that explain missing figures."""
    lacking = [
        percent
        for percent in PERCENTILES
        if any(of.percentiles_ns.get(percent) is None for _, of in shown)
    ]
    notes = [
        f"–: p{percent:g} needs at least {min_section_size(percent):,} operations in each "
        "section, and must be below the times of operations that timed out."
        for percent in lacking
    ]
    if any(of.ops_per_s is None for _, of in shown):
        notes.append(
            "–: the rate of an open loop is given, and a closed loop needs an operation in each "
            "section."
        )
    return notes
