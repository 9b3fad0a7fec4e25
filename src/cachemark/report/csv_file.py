"""The report as CSV: one line for each cell and kind of operation, with units in the names.

`response_*` and `service_*` are percentiles of the operations of all trials together. `*_low` and
`*_high` are the range of the trials, or their 95 % interval if there are very many. A search has
other lines: what it found, and each trial, with the columns of `SearchRow`. `ratio_to_first` is by
the figure that ranks the group, and `itself_bound` is the A/A bound of its group in this figure.
"""

from collections.abc import Sequence

import msgspec

from cachemark.analysis.statistics import (
    PERCENTILES,
    CellSummary,
    Interval,
    KindSummary,
    min_sample_size,
)
from cachemark.report.csv_text import csv_text, figure_text, interval_texts
from cachemark.report.model import ClientRow, Report, SearchRow

_ENDS = ("", "_low", "_high")
COLUMNS = (
    *["client", "library", "library_version", "server", "server_version", "workload", "load"],
    *["operation", "trials", "valid_trials", "ok"],
    *[f"ops_per_s{end}" for end in _ENDS],
    *[f"response_p{percent}_ns{end}" for percent in ("50", "90", "99", "99.9") for end in _ENDS],
    *["response_max_ns", "service_p50_ns", "service_p99_ns"],
    *[f"client_cpu_us_per_op{end}" for end in _ENDS],
    *[f"server_cpu_us_per_op{end}" for end in _ENDS],
    *[f"slices_second_half_rate_ratio{end}" for end in _ENDS],
    *[*[f"ratio_to_first{end}" for end in _ENDS], "itself_bound"],
    *["hits", "misses", "not_stored", "errors", "evictions", "new_connections", "reason"],
)


def render(report: Report) -> str:
    """The report as CSV text."""
    if report.header.experiment.search:
        return csv_text([SearchRow.__struct_fields__, *map(_search_line, report.searched)])
    halves = {of.cell: of.ratio for of in report.rounds.halves} if report.rounds else {}
    rows = [
        _line(row.summary, kind, [*half, *_ratio(row), figure_text(group.itself_bound)])
        for group in report.groups
        for row in group.rows
        for half in [_interval(halves.get(row.summary.cell))]
        for kind in [row.summary.total, *row.summary.parts]
    ]
    return csv_text([COLUMNS, *rows, *[_line(summary, None) for summary in report.missing]])


def _search_line(row: SearchRow) -> list[object]:
    values = msgspec.structs.astuple(row)
    return [figure_text(value) if isinstance(value, float) else value for value in values]


def _ratio(row: ClientRow) -> list[str]:
    if row.fastest:
        return ["1", "", ""]
    return interval_texts(row.comparison.ratio if row.comparison else None)


def _line(
    summary: CellSummary, kind: KindSummary | None, compared: Sequence[str] = ()
) -> list[object]:
    cell = summary.cell
    named = [cell.client, summary.library, summary.library_version]
    named += [cell.server, summary.server_version, cell.workload, cell.load]
    if kind is None:
        counts = ["all", summary.trials, summary.valid, *[""] * (len(COLUMNS) - len(named) - 4)]
        return [*named, *counts, _reasons(summary, kind)]
    response = kind.response.percentiles if kind.response else {}
    intervals = kind.response.intervals if kind.response else {}
    times = [
        at
        for p in PERCENTILES
        for at in (_float_text(response.get(p)), *_interval(intervals.get(p))[1:])
    ]
    service = kind.service.percentiles if kind.service else {}
    whole = not kind.kind
    client_cpu, server_cpu = summary.client_cpu_us, summary.server_cpu_us
    return [
        *(*named, kind.kind or "all", summary.trials, summary.valid, kind.ok),
        *_interval(kind.rate),
        *times,
        kind.response.max_ns if kind.response else "",
        *[_float_text(service.get(percent)) for percent in (50.0, 99.0)],
        *_interval(client_cpu if whole else None),
        *_interval(server_cpu if whole else None),
        *(compared if whole else [""] * len(compared)),
        *("" if count is None else count for count in (kind.hits, kind.misses, kind.not_stored)),
        sum(kind.errors.values()),
        *((_float_text(summary.evictions), summary.renewed) if whole else ("", "")),
        _reasons(summary, kind),
    ]


def _reasons(summary: CellSummary, kind: KindSummary | None) -> str:
    """Why trials or figures are missing; a group of operations never has hits."""
    reasons = [summary.unsupported] if summary.unsupported else []
    reasons += [f"{count} trials {reason}" for reason, count in summary.rejected.items()]
    if kind and (of := kind.response):
        reasons += [f"p{each:g} withheld" for each in of.withheld]
        reasons += [f"p{each:g} is at least {ns} ns" for each, ns in of.at_least.items()]
        reasons += [f"p{each:g} needs {min_sample_size(each)} operations" for each in of.too_few]
    if kind and kind.hits is None and kind is not summary.groups:
        reasons += ["hits and misses withheld"]
    return "; ".join(reasons)


def _interval(of: Interval | None) -> list[str]:
    return [_float_text(part) for part in ((of.value, of.low, of.high) if of else (None,) * 3)]


def _float_text(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
