"""Response time by percentile, on HdrHistogram's axis: 90 %, 99 %, 99.9 % … are equally spaced."""

import math

from cachemark.analysis.number_format import percentile, time
from cachemark.report.document import Plot, Spec, Table, plain_table
from cachemark.report.model import ClientRow, Group
from cachemark.report.plots.layout import is_wide
from cachemark.report.plots.line_chart import ChartLine, ChartPoint, line_plot
from cachemark.report.plots.plot import slug
from cachemark.report.tables import group_title

_LABELLED_PERCENTS = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999)
_LABEL = "format(100 * (1 - 1 / datum.value), '.6~r') + ' %'"


def percentiles(group: Group, width: int) -> Plot | None:
    """The clients' response times by percentile; None if no client has any."""
    lines = [_line(row) for row in group.rows if _has_curve(row)]
    if not lines:
        return None
    furthest = max(mark.x for line in lines for mark in line.marks)
    table = _table(group)
    told = {row[0]: f"{row[0]} p50 {row[1]}, p99 {row[3]}" for row in table.rows}
    return line_plot(
        lines,
        width,
        name=slug("percentiles", group.workload, group.load, group.common),
        title="Response time by percentile",
        caption="Each curve ends where there are too few operations for a percentile.",
        about="response time by percentile, logarithmic",
        told=lambda line: told[line.label],
        x=_axis(furthest, width),
        y_title="response time",
        height=260,
        subtitle=group_title(group),
        table=table,
    )


def _has_curve(row: ClientRow) -> bool:
    total = row.summary.total
    return bool(total and total.response and total.response.curve)


def _line(row: ClientRow) -> ChartLine:
    label, total = row.name, row.summary.total
    curve = total.response.curve if total and total.response else []
    marks = [
        ChartPoint(
            x=1 / (1 - point.percent / 100),
            y=float(point.ns),
            description=_tooltip(label, point.percent, point.ns),
        )
        for point in curve
    ]
    return ChartLine(label=label, marks=marks, series=row.series)


def _tooltip(label: str, percent: float, ns: int) -> str:
    """The text of a point: only 90 %, 99 %, 99.9 % … have one."""
    near = [
        labelled for labelled in _LABELLED_PERCENTS if math.isclose(labelled, percent, rel_tol=1e-9)
    ]
    return f"{label}: {near[0]:g} % within {time(ns)}" if near else ""


def _axis(furthest: float, width: int) -> Spec:
    nines = [10.0**n for n in range(1, 9) if 10.0**n <= furthest * 1.01]
    return {
        "type": "quantitative",
        "scale": {"type": "log", "domain": [1, furthest], "nice": False},
        "axis": {
            "title": "operations done within this time",
            "values": [2.0, *nines],
            "labelExpr": _LABEL,
            "labelOverlap": not is_wide(width),
            "grid": True,
        },
    }


def _table(group: Group) -> Table:
    rows: list[list[str]] = []
    for row in group.rows:
        total = row.summary.total
        times = total.response if total else None
        if times is None:
            continue
        cells = [percentile(times, percent) for percent in (50.0, 90.0, 99.0, 99.9)]
        rows.append([row.name, *cells, time(times.max_ns), f"{times.count:,}"])
    columns = ["client", "p50", "p90", "p99", "p99.9", "longest", "operations"]
    return plain_table(columns=columns, rows=rows)
