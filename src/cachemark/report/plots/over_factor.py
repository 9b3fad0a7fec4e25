"""The figure over a numeric factor, such as the number of callers: a line for each client."""

from collections.abc import Callable, Sequence

import msgspec

from cachemark.analysis.number_format import number, time
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Load, Workload
from cachemark.model.units import parse_size
from cachemark.report.document import Plot, Spec, Table, plain_table
from cachemark.report.model import Group, Report, ranked_figure
from cachemark.report.plots.layout import LINES_ACROSS, SI_LABEL, TIME_LABEL
from cachemark.report.plots.line_chart import ChartLine, ChartPoint, from_to, line_plot
from cachemark.report.plots.plot import slug

# With a larger ratio of its values, a factor has a logarithmic axis.
_MAX_LINEAR = 6.0
_Work = tuple[Workload, Load]


class _Factor(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that is a number. `without`: the work and the load as if it did not vary."""

    name: str
    of: Callable[[Workload, Load], float | None]
    without: Callable[[Workload, Load], _Work]


def _of_load(name: str, field: str) -> _Factor:
    def of(_: Workload, load: Load) -> float | None:
        return getattr(load, field)

    def without(workload: Workload, load: Load) -> _Work:
        return workload, msgspec.structs.replace(load, name="", **{field: 1})

    return _Factor(name=name, of=of, without=without)


def _value_size(workload: Workload, _: Load) -> float | None:
    """The size of all values; None for a distribution."""
    try:
        return None if workload.trace else parse_size(workload.values.size, "size")
    except UsageError:
        return None


def _without_size(workload: Workload, load: Load) -> _Work:
    values = msgspec.structs.replace(workload.values, size="1")
    return msgspec.structs.replace(workload, name="", values=values), load


_FACTORS = (
    _of_load("threads", "threads"),
    _of_load("connections", "connections"),
    _of_load("depth", "depth"),
    _of_load("processes", "processes"),
    _of_load("hosts", "hosts"),
    _Factor(name="bytes of a value", of=_value_size, without=_without_size),
)
_Points = list[tuple[float, Group]]


def over_factor(report: Report, width: int) -> list[Plot]:
    """A plot for each factor by which groups differ if they are alike in everything else."""
    plots = [
        _plot(factor, sorted(points, key=lambda point: point[0]), width)
        for factor in _FACTORS
        for points in _series(factor, report)
    ]
    return [plot for plot in plots if plot]


def _series(factor: _Factor, report: Report) -> list[_Points]:
    experiment = report.header.experiment
    loads = {load.name: load for load in experiment.loads}
    workloads = {workload.name: workload for workload in experiment.workloads}
    together: dict[tuple[str, str, bytes], _Points] = {}
    for group in report.groups:
        workload = msgspec.structs.replace(workloads[group.workload], loads=None)
        load = loads[group.load]
        value = factor.of(workload, load)
        if value is not None:
            rest = msgspec.json.encode(factor.without(workload, load))
            together.setdefault((group.kind, group.common, rest), []).append((value, group))
    return [
        points
        for points in together.values()
        if len({value for value, _ in points}) == len(points) > 1
    ]


def _plot(factor: _Factor, points: _Points, width: int) -> Plot | None:
    first = points[0][1]
    closed = first.metric == "rate"
    names = list(dict.fromkeys(row.name for _, group in points for row in group.rows))
    lines = [line for name in names if len((line := _line(factor, name, points)).marks) > 1]
    if not lines:
        return None
    what = "operations per second" if closed else "p99 of the response time"
    write = number if closed else time
    place = " · ".join([*_shared(points), first.common])
    return line_plot(
        lines,
        width,
        name=slug("over", factor.name, place),
        title=f"{'Throughput' if closed else 'p99'} over {factor.name}",
        caption=LINES_ACROSS,
        about=f"{what} over {factor.name}",
        told=from_to(lambda mark: write(mark.y)),
        x=_axis(factor, [value for value, _ in points]),
        y_title=what,
        y_labels=SI_LABEL if closed else TIME_LABEL,
        subtitle=place,
        table=_table(points, lines, write),
    )


def _shared(points: _Points) -> list[str]:
    groups = [group for _, group in points]
    names = ({group.workload for group in groups}, {group.load for group in groups})
    return [next(iter(distinct)) for distinct in names if len(distinct) == 1]


def _line(factor: _Factor, name: str, points: _Points) -> ChartLine:
    marks: list[ChartPoint] = []
    series: int | None = None
    for value, group in points:
        row = next((row for row in group.rows if row.name == name), None)
        of = ranked_figure(row.summary, group.metric) if row else None
        if row is None or of is None:
            continue
        series = row.series
        text = f"{number(of.value)} ops/s" if group.metric == "rate" else f"p99 {time(of.value)}"
        marks.append(
            ChartPoint(
                x=value,
                y=of.value,
                low=of.low,
                high=of.high,
                description=f"{name}, {value:,.0f} {factor.name}: {text}",
            )
        )
    return ChartLine(label=name, marks=marks, series=series)


def _axis(factor: _Factor, values: Sequence[float]) -> Spec:
    least, most = min(values), max(values)
    scale: Spec = {"type": "linear", "zero": True, "nice": True}
    if most / least > _MAX_LINEAR:
        scale = {"type": "log", "base": 2, "domain": [least, most], "nice": False}
    axis = {"title": factor.name, "values": list(values), "labelExpr": SI_LABEL,
            "labelOverlap": True}  # fmt: skip
    return {"type": "quantitative", "scale": scale, "axis": axis}


def _table(points: _Points, lines: Sequence[ChartLine], write: Callable[[float], str]) -> Table:
    by_line = [{mark.x: mark.y for mark in line.marks} for line in lines]
    return plain_table(
        columns=["client", *[f"{value:,.0f}" for value, _ in points]],
        rows=[
            [line.label, *[write(of[value]) if value in of else "–" for value, _ in points]]
            for line, of in zip(lines, by_line, strict=True)
        ],
    )
