"""A prediction from a trace as a document. Pure."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import get_args

import msgspec

from cachemark.analysis.number_format import counted
from cachemark.model.miss_ratio import (
    CachePolicy,
    CheckedTrace,
    CurvePoint,
    MissRatioCurve,
    PredictionCheck,
)
from cachemark.model.trace_statistics import Estimate
from cachemark.model.units import MIB
from cachemark.report.document import Document, DocumentPart, Plot
from cachemark.report.plots.line_chart import ChartLine, ChartPoint
from cachemark.report.trace import told
from cachemark.report.trace.document import trace_part
from cachemark.report.trace.statistics_plots import drawn

# Figures of a part of the keys are drawn with this many standard errors.
_DRAWN_ERRORS = 2.0
_LATE_S = 1.0
_SHARE_LABEL = "format(100 * datum.value, '~r') + ' %'"


def document(checked: CheckedTrace) -> Document:
    """The document of what was predicted from a trace: the engine's words, with plots."""
    of = checked.predicted
    words = told.document(of.words)
    reads, size_of_reads, *others = words.parts
    curves = of.prediction.curves
    drawn_reads = partial(_plot, curves, reads.title, "reads", lambda point: point.misses)
    drawn_bytes = partial(_plot, curves, size_of_reads.title, "bytes", lambda p: p.byte_misses)
    return msgspec.structs.replace(
        words,
        parts=[
            *([_checks(checked.checks)] if checked.checks else []),
            msgspec.structs.replace(reads, plots=drawn_reads),
            msgspec.structs.replace(size_of_reads, plots=drawn_bytes),
            *others,
        ],
    )


def _checks(checks: Sequence[PredictionCheck]) -> DocumentPart:
    rows = [
        [
            f"{each.server} {each.version}",
            _memory(each.memory_bytes),
            _percent(each.predicted),
            f"{100 * each.measured:.2f} %",
            f"{100 * (each.predicted.value - each.measured):+.2f} points",
        ]
        for each in checks
    ]
    columns = ["server", "memory", "predicted", "measured", "difference"]
    return trace_part("Predicted beside measured", columns, rows, list(_check_notes(checks)))


def _check_notes(checks: Sequence[PredictionCheck]) -> Iterator[str]:
    first = checks[0]
    speed = "in its own time"
    if first.speed != 1:
        speed = (
            f"{first.speed:.3g} times as fast, with expiry times as much shorter, in whole seconds"
        )
    yield (
        f"The trace was played {speed}, with the fills of the table below; the prediction here is "
        f"one for that. {counted(first.reads)} reads were counted."
    )
    if any(each.late_s > _LATE_S for each in checks):
        late = max(each.late_s for each in checks)
        yield f"The play was too slow: its last request came {late:.1f} s late. More items expired."
    if refused := sum(each.refused for each in checks):
        yield f"{refused:,} writes were refused: too large, or no memory for their class."


def _plot(
    curves: Sequence[MissRatioCurve],
    title: str,
    unit: str,
    get: Callable[[CurvePoint], Estimate | None],
    width: int,
) -> list[Plot]:
    """The curves; none if there is only one size."""
    x = {
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "axis": {
            "title": "memory in MiB",
            "values": [point.memory_bytes / MIB for point in curves[0].points],
            "labelExpr": "format(datum.value, 'd')",
            "labelOverlap": True,
        },
    }
    return drawn(
        f"curve-{unit}", title, [_line(curve, get) for curve in curves], width, x=x,
        unit=f"share of {unit} that miss", labels=_SHARE_LABEL,
        write=lambda share: f"{100 * share:.2f} %",
        caption="Lines across: two standard errors, where not all keys were followed.",
    )  # fmt: skip


def _line(curve: MissRatioCurve, get: Callable[[CurvePoint], Estimate | None]) -> ChartLine:
    name = curve.policy.replace("lru", "LRU")
    marks: list[ChartPoint] = []
    for point in curve.points:
        of = get(point)
        if not of or not of.value:  # withheld, or a logarithmic axis has no place for it
            continue
        reach = _DRAWN_ERRORS * of.error
        marks.append(
            ChartPoint(
                x=point.memory_bytes / MIB,
                y=of.value,
                low=max(of.value / 10, of.value - reach) if reach else None,
                high=min(1.0, of.value + reach) if reach else None,
                description=f"{name} with {_memory(point.memory_bytes)}: {_percent(of)} miss",
            )
        )
    return ChartLine(label=name, marks=marks, series=get_args(CachePolicy).index(curve.policy))


def _memory(count: int) -> str:
    """A size of memory in MiB or GiB.

    >>> _memory(64 << 20), _memory(4 << 30), _memory(1634 << 20)
    ('64 MiB', '4 GiB', '1634 MiB')
    """
    mib = count / MIB
    return f"{mib / 1024:g} GiB" if mib >= 1024 and mib % 1024 == 0 else f"{mib:g} MiB"


def _percent(of: Estimate) -> str:
    """A share, such as 12.34 % or 12.34 % ±0.21."""
    value = f"{100 * of.value:.2f} %"
    return f"{value} ±{100 * of.error:.2f}" if of.error else value
