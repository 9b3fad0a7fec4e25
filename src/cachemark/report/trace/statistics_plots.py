"""The pictures of a trace's statistics, as Vega-Lite specifications."""

from collections.abc import Callable, Sequence

from cachemark.analysis.number_format import number, size
from cachemark.model.trace_statistics import SizeDistribution, TimeWindow, TraceStatistics
from cachemark.report.document import Plot, Spec
from cachemark.report.plots.layout import MEMORY_LABEL, SHARE_LABEL, SI_LABEL
from cachemark.report.plots.line_chart import (
    ChartLine,
    ChartPoint,
    from_to,
    line_plot,
    points_table,
)

_SHARE_OF_ALL = "format(100 * datum.value, '~r') + ' %'"
_MOST_OPERATIONS = 5


def traffic(of: TraceStatistics, width: int) -> list[Plot]:
    """Requests per second over time, by operation, and the hit ratio."""
    names = sorted(of.operations, key=lambda name: -of.operations[name])[:_MOST_OPERATIONS]

    def rate(name: str) -> Callable[[TimeWindow], float | None]:
        return lambda window: window.operations.get(name, 0) / of.window_s

    lines = [_over(of, name, rate(name), lambda y: f"{number(y)}/s") for name in names]
    ratio = _over(of, "hit ratio", lambda window: window.reads.hit_ratio, percent, zero=True)
    return [
        *drawn("requests", "Requests over time", lines, width, x=_time(of, width),
               unit="requests per second", labels=SI_LABEL, write=number),
        *drawn("hits", "Hit ratio over time", [ratio], width, x=_time(of, width),
               unit="share of reads that hit", labels=SHARE_LABEL, write=percent, shares=True),
    ]  # fmt: skip


def over_time(of: TraceStatistics, width: int) -> list[Plot]:
    """New keys, and the bytes that are alive, over time."""
    new = _over(of, "new keys", lambda window: window.new_keys / of.window_s, number)
    alive = _over(of, "alive", lambda window: window.live_bytes, size)
    return [
        *drawn("churn", "New keys over time", [new], width, x=_time(of, width),
               unit="new keys per second", labels=SI_LABEL, write=number),
        *drawn("alive", "Bytes alive over time", [alive], width, x=_time(of, width),
               unit="bytes of keys and values", labels=MEMORY_LABEL, write=size),
    ]  # fmt: skip


def sizes(of: TraceStatistics, width: int) -> list[Plot]:
    """The part of requests with a key or value of at most a size; the same of expiry times."""
    bytes_ = [
        _distribution("keys", of.key_bytes, size),
        _distribution("values read", of.read_value_bytes, size),
        _distribution("values written", of.written_value_bytes, size),
    ]
    ttls = [_distribution("writes that expire", of.ttls.seconds, lambda y: f"{y:,.0f} s")]
    return [
        *drawn("sizes", "Sizes of keys and values", bytes_, width, x=_log("bytes", width),
               unit="part of requests up to this size", labels=SHARE_LABEL, write=percent,
               shares=True),
        *drawn("ttls", "Expiry times", ttls, width, x=_log("seconds", width),
               unit="part of writes up to this time", labels=SHARE_LABEL, write=percent,
               shares=True),
    ]  # fmt: skip


def keys(of: TraceStatistics, width: int) -> list[Plot]:
    """The share of the key of each rank."""
    marks = [
        ChartPoint(
            x=each.rank, y=each.share, description=f"rank {each.rank:,.0f}: {percent(each.share)}"
        )
        for each in of.keys.ranks
    ]
    line = ChartLine(label="share", marks=marks)
    return drawn("ranks", "Popularity of keys", [line], width, x=_log("rank of the key", width),
                 unit="share of all requests", labels=_SHARE_OF_ALL, write=percent)  # fmt: skip


def bursts(of: TraceStatistics, width: int) -> list[Plot]:
    """The index of dispersion over the width of the windows."""
    marks = [
        ChartPoint(
            x=each.window_s, y=each.index, description=f"{each.window_s:g} s: {each.index:.3g}"
        )
        for each in of.bursts
        if each.index > 0
    ]
    line = ChartLine(label="index", marks=marks)
    return drawn("bursts", "Bursts", [line], width, x=_log("seconds of a window", width),
                 unit="index of dispersion", labels=SI_LABEL, write=number)  # fmt: skip


def _distribution(label: str, of: SizeDistribution, write: Callable[[float], str]) -> ChartLine:
    marks: list[ChartPoint] = []
    for part, largest in of.quantiles:
        if largest > 0:
            text = f"{label}: {percent(part)} at most {write(largest)}"
            marks.append(ChartPoint(x=largest, y=part, description=text))
    return ChartLine(label=label, marks=marks)


def _over(
    of: TraceStatistics,
    label: str,
    get: Callable[[TimeWindow], float | None],
    write: Callable[[float], str],
    *,
    zero: bool = False,
) -> ChartLine:
    """A figure of each window. The last window is not whole, so it has no rate."""
    marks: list[ChartPoint] = []
    for place, window in enumerate(of.timeline[:-1]):
        y = get(window)
        if y is not None and (y > 0 or zero):
            x = (place + 0.5) * of.window_s
            marks.append(ChartPoint(x=x, y=y, description=f"{label} at {x:,.4g} s: {write(y)}"))
    return ChartLine(label=label, marks=marks)


def drawn(
    name: str,
    title: str,
    lines: Sequence[ChartLine],
    width: int,
    *,
    x: Spec,
    unit: str,
    labels: str,
    write: Callable[[float], str],
    shares: bool = False,
    caption: str = "",
) -> list[Plot]:
    """The plot; none if no line has two points."""
    lines = [line for line in lines if len(line.marks) > 1]
    if not lines:
        return []
    plot = line_plot(
        lines,
        width,
        name=name,
        title=title,
        caption=caption,
        about=unit,
        told=from_to(lambda mark: write(mark.y)),
        x=x,
        y_title=unit,
        y_labels=labels,
        shares=shares,
        table=points_table(["what", "at", unit], lines, "{:,.6g}".format, write),
    )
    return [plot]


def _time(of: TraceStatistics, width: int) -> Spec:
    return {
        "type": "quantitative",
        "scale": {"domain": [0, of.duration_s or 1.0], "nice": False},
        "axis": {"title": "seconds since the trace began", "tickCount": max(3, width // 110)},
    }


def _log(title: str, width: int) -> Spec:
    return {
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "axis": {"title": title, "tickCount": max(3, width // 130), "labelExpr": SI_LABEL},
    }


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"
