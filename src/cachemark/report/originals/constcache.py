"""The run as constcache's test results: a grid of concurrency by store, with time and memory.

A grid for each workload, a row for each number of callers at the same time (of several loads with
the same number, each has a row of its own), a pair of columns for each client and server. Time is
in seconds, wall clock, for 10,000 operations of each caller: the valid trials' windows together,
scaled by the operations done in them. Memory is the server's resident size after the window in MB
of 2²⁰ bytes, the original's unit: the mean of the trials. Of a cache in the client's
process it is what the cache takes by its own account. A remote server has none.

The original's time is the sum over its processes, so it grows with their number even where each is
as fast as one alone; multiply by the concurrency to compare.
"""

import statistics

from cachemark.model.outcome import Outcome
from cachemark.report.originals.figures import store_bytes, totals
from cachemark.report.originals.quotes import quoted_lines
from cachemark.report.series import ExportedRun, Series

_OPS_EACH = 10_000
_TIME, _MEMORY = ("Time-consuming", "(s)"), ("Memory", "(M)")


def render(run: ExportedRun) -> dict[str, str]:
    """The text."""
    lines = [
        "Time: wall-clock time for 10,000 operations of each caller; the original has the sum of "
        "its processes' times.",
        "Memory: the server's resident size after the window; of a cache in the process, its own "
        "account.",
    ]
    for workload in dict.fromkeys(series.cell.workload for series in run.series):
        members = [series for series in run.series if series.cell.workload == workload]
        lines += ["", f"{workload}, values of {members[0].workload.values.size} bytes", ""]
        lines += grid(members)
    lines += quoted_lines(run.header.experiment.name)
    if run.left_out:
        lines += ["", "Left out:", *run.left_out]
    return {"constcache.txt": "\n".join(lines) + "\n"}


def grid(members: list[Series]) -> list[str]:
    """One grid; cells that were not measured are empty."""
    stores = list(dict.fromkeys(_store(series) for series in members))
    loads = sorted({(series.callers, series.cell.load) for series in members})
    twice = len({callers for callers, _ in loads}) < len(loads)
    by_place = {(series.cell.load, _store(series)): series for series in members}
    body = [
        [
            f"{callers} {load}" if twice else str(callers),
            *[text for store in stores for text in _figures(by_place.get((load, store)))],
        ]
        for callers, load in loads
    ]
    head = [["concurrency", *[text for _ in stores for text in (_TIME[0], _MEMORY[0])]]]
    units = [["value", *[text for _ in stores for text in (_TIME[1], _MEMORY[1])]]]
    widths = [max(len(row[at]) for row in head + units + body) for at in range(len(head[0]))]
    for number, store in enumerate(stores):
        # A name wider than its pair of columns widens the first of them.
        first = 1 + 2 * number
        widths[first] += max(0, len(store) - widths[first] - widths[first + 1] - 1)
    pairs = [widths[1 + 2 * n] + widths[2 + 2 * n] + 1 for n in range(len(stores))]
    rule = " " + "-" * (sum(widths) + len(widths) + 1)
    top = _row(["", *stores], [widths[0], *pairs])
    lines = [rule, top, rule, _row(head[0], widths), _row(units[0], widths), rule]
    for row in body:
        lines += [_row(row, widths), rule]
    return lines


def _row(cells: list[str], widths: list[int]) -> str:
    return "|" + "|".join(c.center(w) for c, w in zip(cells, widths, strict=True)) + "|"


def _store(series: Series) -> str:
    cell = series.cell
    return f"{cell.client} @ {cell.server}"


def _memory_bytes(trial: Outcome) -> int | None:
    use = trial.server_use
    return use.rss_after_bytes if use else store_bytes(trial)


def _figures(series: Series | None) -> tuple[str, str]:
    if series is None:
        return "", ""
    of = totals(series.windows)
    seconds = of.elapsed_ns / 1e9 / of.ok * _OPS_EACH * series.callers
    sizes = [_memory_bytes(outcome) for outcome in series.outcomes]
    known = [size for size in sizes if size]
    memory = statistics.fmean(known) / 2**20 if len(known) == len(sizes) else None
    return f"{seconds:.4g}", "" if memory is None else f"{memory:.4g}"
