"""Servers: distances, evictions, refused operations, and how keys are spread over several."""

from collections.abc import Mapping, Sequence
from statistics import median

from cachemark.analysis.number_format import count_of, counted, size, time
from cachemark.analysis.statistics import CellSummary
from cachemark.model.distance import Distance
from cachemark.model.experiment import Experiment, Load
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import NO_SERVER, is_repeat
from cachemark.model.search_steps import besides_callers
from cachemark.model.server_stats import ServerLoad, SlabClass
from cachemark.report.model import Section

# A client, a server, a workload and a kind of operation; what share was refused, by callers.
_Refusal = tuple[tuple[str, str, str, str], dict[int, str]]


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

    Shares of commands cover all valid trials; items are counted after the last trial.
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
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


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


def server_sections(
    experiment: Experiment, summaries: Sequence[CellSummary], outcomes: Sequence[Outcome]
) -> list[Section]:
    """The tables of servers that refused operations, or that evicted items from several classes."""
    return [*_refused_by_callers(_refusals(experiment, summaries)), *_size_classes(outcomes)]


def refused_lines(experiment: Experiment, summaries: Sequence[CellSummary]) -> list[str]:
    """A sentence for each row of the table of refused operations: its share by callers."""
    lines: list[str] = []
    for (client, server, workload, kind), shares in _refusals(experiment, summaries):
        told = [f"{share} with {count_of(count, 'caller')}" for count, share in shares.items()]
        of = f"{workload}, {client} against {server}: of {kind}"
        lines.append(f"{of} the server refused {_listed(told)}.")
    return lines


def _refusals(experiment: Experiment, summaries: Sequence[CellSummary]) -> list[_Refusal]:
    """By number of callers, where one kind of work was played with several numbers."""
    loads = {load.name: load for load in experiment.loads}
    works: dict[tuple[str, str, str, Load], dict[int, CellSummary]] = {}
    for summary in summaries:
        cell, load = summary.cell, loads.get(summary.cell.load)
        if load is None:
            continue
        work = (cell.client, cell.server, cell.workload, besides_callers(load))
        works.setdefault(work, {})[load.threads * load.processes] = summary
    return [
        ((*work[:3], kind), shares)
        for work, of in works.items()
        if len(of) > 1
        for kind, shares in _refused(of).items()
    ]


def _refused_by_callers(refusals: Sequence[_Refusal]) -> list[Section]:
    """One row for each client and kind of operation, one column for each number of callers."""
    if not refusals:
        return []
    callers = sorted({count for _, shares in refusals for count in shares})
    return [
        Section(
            title="Refused operations by callers",
            topic="servers",
            columns=["client", "server", "workload", "operation"]
            + [count_of(count, "caller") for count in callers],
            rows=[
                [*where, *(shares.get(count, "–") for count in callers)]
                for where, shares in refusals
            ],
            notes=[
                "The part of all answers that the server refused: of cas, another caller wrote "
                "the key between the read and the swap."
            ],
        )
    ]


def _refused(by_callers: Mapping[int, CellSummary]) -> dict[str, dict[int, str]]:
    """The share by kind and callers, of kinds that were refused at all and that were answered."""
    refused = {one.kind for of in by_callers.values() for one in of.kinds if one.not_stored}
    shares: dict[str, dict[int, str]] = {}
    for count, summary in sorted(by_callers.items()):
        for one in summary.kinds:
            if one.kind in refused and (answered := one.ok + one.not_stored):
                share = f"{100 * one.not_stored / answered:.1f} %"
                shares.setdefault(one.kind, {})[count] = share
    return shares


def _size_classes(outcomes: Sequence[Outcome]) -> list[Section]:
    """A table for each server, workload and load: its last valid trial with several classes."""
    last: dict[tuple[str, str, str], Outcome] = {}
    for outcome in outcomes:
        if outcome.verdict == "VALID" and len(outcome.slab_classes) > 1:
            cell = outcome.trial.cell
            last[cell.server, cell.workload, cell.load] = outcome
    return [_size_class_table(place, outcome) for place, outcome in last.items()]


def _size_class_table(place: tuple[str, str, str], outcome: Outcome) -> Section:
    classes = [one for one in outcome.slab_classes if one.memory_bytes]
    total = sum(one.memory_bytes for one in classes)
    return Section(
        title=f"Memory by size class · {' · '.join(place)}",
        topic="servers",
        columns=["class up to", "items", "memory", "of the memory", "evicted"],
        rows=[_size_class_row(one, total) for one in classes],
        notes=[
            f"After the last valid trial of {outcome.trial.cell.client}. Evictions are since the "
            "server's start, with the prefill."
        ],
    )


def _size_class_row(one: SlabClass, total: int) -> list[str]:
    return [
        f"{one.chunk_bytes:,} B",
        counted(one.items),
        size(one.memory_bytes),
        f"{100 * one.memory_bytes / total:.1f} %",
        counted(one.evictions),
    ]
