"""Cells of which one trial counts: how far its own figures can be trusted, and no further."""

from __future__ import annotations

from collections.abc import Sequence

from cachemark.analysis.number_format import spread, time_spread
from cachemark.analysis.statistics import PERCENTILES, CellSummary, Within, least_section
from cachemark.report.value import Section


def sections(summaries: Sequence[CellSummary]) -> list[Section]:
    """A line for each such cell whose client keeps sections; none: no section."""
    single = [(s, s.within) for s in summaries if s.within is not None]
    found = [(s, within) for s, within in single if not within.why]
    if not found:
        return []
    without = [f"{s.cell.client}: {within.why}" for s, within in single if within.why]
    return [
        Section(
            title="Within one trial",
            topic="within",
            columns=["client", "server", "workload", "load", "ops/s",
                     *[f"p{percent:g}" for percent in PERCENTILES]],
            rows=[_row(summary, within) for summary, within in found],
            notes=[
                "± within one trial, from its ten sections: what the next trial of the same cell "
                "would differ by is not in it, so nothing may be compared by it. An interval over "
                "trials takes two or more (--blocks).",
                *_lacking(found),
                *dict.fromkeys(without),
            ],
        )
    ]  # fmt: skip


def _row(summary: CellSummary, of: Within) -> list[str]:
    cell = summary.cell
    times = [of.percentiles_ns.get(percent) for percent in PERCENTILES]
    return [
        cell.client,
        cell.server,
        cell.workload,
        cell.load,
        "–" if of.ops_per_s is None else spread(of.ops_per_s),
        *["–" if time is None else time_spread(time) for time in times],
    ]


def _lacking(found: Sequence[tuple[CellSummary, Within]]) -> list[str]:
    """Why a figure is a dash."""
    lacking = [
        percent
        for percent in PERCENTILES
        if any(of.percentiles_ns.get(percent) is None for _, of in found)
    ]
    notes = [
        f"–: a p{percent:g} needs {least_section(percent):,} operations in each section, and may "
        "not reach what timed out."
        for percent in lacking
    ]
    if any(of.ops_per_s is None for _, of in found):
        notes.append("–: the rate of an open loop was given, and a section without an operation "
                     "has none.")  # fmt: skip
    return notes
