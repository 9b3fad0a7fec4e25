"""Response time over throughput: the behaviour of a client or server under rising load."""

from cachemark.analysis.number_format import number, time
from cachemark.analysis.statistics import Interval, KindSummary
from cachemark.model.experiment import Load
from cachemark.model.experiment_limits import outstanding_ops
from cachemark.report.document import Plot, Table, plain_table
from cachemark.report.model import Group, Report
from cachemark.report.plots.layout import LINES_ACROSS
from cachemark.report.plots.line_chart import ChartLine, ChartPoint, from_to, line_plot, rate_axis
from cachemark.report.plots.plot import slug


def latency_over_throughput(report: Report, width: int) -> list[Plot]:
    """Plots of p50 and p99 for each server, workload and wire that has several loads."""
    loads = {load.name: load for load in report.header.experiment.loads}
    together: dict[tuple[str, ...], list[Group]] = {}
    for group in sorted(report.groups, key=lambda group: _offered_load(loads[group.load])):
        load = loads[group.load]
        key = (group.workload, group.common, load.wire, load.schedule)
        together.setdefault(key, []).append(group)
    plots: list[Plot] = []
    for (workload, server, wire, _), groups in together.items():
        # Two loads of the same strength make no curve.
        if len({_offered_load(loads[group.load]) for group in groups}) == len(groups) > 1:
            place = " · ".join([workload, server, *([wire] if wire != "own" else [])])
            plots += [p for percent in (50, 99) if (p := _plot(groups, percent, place, width))]
    return plots


def _offered_load(load: Load) -> float:
    return load.rate or outstanding_ops(load)


def _plot(groups: list[Group], percent: int, place: str, width: int) -> Plot | None:
    clients = list(dict.fromkeys(row.name for g in groups for row in g.rows))
    lines = [line for client in clients if len((line := _line(client, groups, percent)).marks) > 1]
    if not lines:
        return None
    return line_plot(
        lines,
        width,
        name=slug("latency", f"p{percent}", place),
        title=f"p{percent}: {place}",
        caption=(
            f"One point for each load, from the weakest ({groups[0].load}) to the strongest "
            f"({groups[-1].load}). {LINES_ACROSS}"
        ),
        about=f"p{percent} of the response time over operations per second",
        told=from_to(lambda mark: f"{time(mark.y)} at {number(mark.x)} ops/s"),
        x=rate_axis("operations per second, as achieved", width),
        y_title=f"p{percent} of the response time",
        subtitle="response time over throughput",
        table=_table(clients, groups, percent),
    )


def _line(client: str, groups: list[Group], percent: int) -> ChartLine:
    marks: list[ChartPoint] = []
    for group in groups:
        total = next((row.summary.total for row in group.rows if row.name == client), None)
        of = _percentile(total, percent)
        if total is None or of is None:
            continue
        description = f"{client}, {group.load}: {number(total.rate.value)} ops/s, p{percent} "
        marks.append(
            ChartPoint(
                x=total.rate.value,
                y=of.value,
                low=of.low,
                high=of.high,
                description=description + time(of.value),
            )
        )
    series = next((row.series for g in groups for row in g.rows if row.name == client), None)
    return ChartLine(label=client, marks=marks, series=series)


def _percentile(total: KindSummary | None, percent: int) -> Interval | None:
    return total.response.intervals.get(percent) if total and total.response else None


def _table(clients: list[str], groups: list[Group], percent: int) -> Table:
    rows: list[list[str]] = []
    for client in clients:
        for group in groups:
            for row in group.rows:
                total = row.summary.total
                if row.name != client or total is None:
                    continue
                of = _percentile(total, percent)
                rate = number(total.rate.value)
                rows.append([client, group.load, rate, time(of.value if of else None)])
    return plain_table(columns=["client", "load", "ops/s", f"p{percent}"], rows=rows)
