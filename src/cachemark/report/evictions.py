"""Evictions of servers, in a sentence: an evicted item causes a miss that the work did not plan."""

from __future__ import annotations

from collections.abc import Sequence

from cachemark.analysis.number_format import counted
from cachemark.analysis.statistics import CellSummary
from cachemark.model.plan import NO_SERVER


def eviction_lines(summaries: Sequence[CellSummary]) -> list[str]:
    """By server: none, how many items, or that the server does not report them; empty without one.

    Counted between the server's two readings of a trial, so a sitting's uncounted parts are in it.
    """
    by_server: dict[str, list[int | None]] = {}
    for summary in summaries:
        if summary.valid and summary.cell.server != NO_SERVER:
            by_server.setdefault(summary.cell.server, []).append(summary.evictions)
    if not by_server:
        return []
    return [f"Evictions: {', '.join(_server_text(*item) for item in by_server.items())}."]


def _server_text(server: str, counts: Sequence[int | None]) -> str:
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return f"{server} not known"
    return f"{server} {counted(sum(known)) if sum(known) else 'none'}"
