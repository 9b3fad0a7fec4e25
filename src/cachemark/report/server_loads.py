"""Servers: distances, evictions, and how a client distributes its keys over several of them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from cachemark.analysis.number_format import counted, time
from cachemark.analysis.statistics import CellSummary
from cachemark.model.distance import Distance
from cachemark.model.outcome import Cell, Outcome, ServerLoad
from cachemark.model.plan import NO_SERVER, is_repeat


def server_lines(summaries: Sequence[CellSummary], outcomes: Sequence[Outcome]) -> list[str]:
    """Lines about distances, evictions, and the items and commands of each of several servers."""
    return [*_distances(outcomes), *eviction_lines(summaries), *server_load_lines(outcomes)]


def _distances(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each distant server: what was asked for, and what the proxy held and added."""
    by_server: dict[str, list[Distance]] = {}
    for outcome in outcomes:
        if outcome.verdict == "VALID" and outcome.server and outcome.server.distance:
            by_server.setdefault(outcome.trial.cell.server, []).append(outcome.server.distance)
    return [_distance(server, distances) for server, distances in by_server.items()]


def _distance(server: str, distances: Sequence[Distance]) -> str:
    text = f"Distance to {server}: {time(distances[0].round_trip_ns)} there and back"
    told = [each.held for each in distances if each.held]
    for way, held in zip(("to it", "back"), zip(*told, strict=True), strict=False):
        middle = time(median(each.median_ns for each in held))
        worst = time(max(each.p99_ns for each in held))
        text += f"; bytes were held {middle} on the way {way} (median; worst p99 {worst})"
    own = time(median(each.floor_ns for each in distances))
    return f"{text}; without a distance the proxy itself takes {own} more than no proxy."


def server_load_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each cell with several servers, in the order in which clients are given them.

    Shares of commands are those of all valid trials; items are those after the last one.
    """
    by_cell: dict[Cell, list[Sequence[ServerLoad]]] = {}
    for outcome in outcomes:
        cell = outcome.trial.cell
        if outcome.verdict == "VALID" and outcome.server_loads and not is_repeat(cell):
            by_cell.setdefault(cell, []).append(outcome.server_loads)
    places = {(cell.workload, cell.load) for cell in by_cell}
    return [
        _line(cell, trials, f", {cell.workload}, {cell.load}" if len(places) > 1 else "")
        for cell, trials in by_cell.items()
    ]


def _line(cell: Cell, trials: Sequence[Sequence[ServerLoad]], place: str) -> str:
    commands = [sum(each.commands for each in of) for of in zip(*trials, strict=True)]
    shares = [f"{100 * count / max(1, sum(commands)):.1f} %" for count in commands]
    text = f"Each server of {cell.server}, {cell.client}{place}: {_listed(shares)} of the commands"
    held = [each.items for each in trials[-1]]
    items = [f"{count:,}" for count in held if count is not None]
    return f"{text}; {_listed(items)} items." if len(items) == len(held) else f"{text}."


def _listed(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


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
