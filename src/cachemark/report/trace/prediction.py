"""A prediction from a trace as a document. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from cachemark.analysis.number_format import counted
from cachemark.model.miss_ratio import (
    CachePolicy,
    CheckedTrace,
    CurvePoint,
    MissRatio,
    MissRatioCurve,
    PredictedTrace,
    PredictionCheck,
)
from cachemark.model.units import MIB
from cachemark.report.plots.line_chart import ChartLine, ChartPoint
from cachemark.report.plots.plot import Plot
from cachemark.report.trace.document import TraceDocument, TracePart
from cachemark.report.trace.statistics_plots import drawn

NAMES: dict[CachePolicy, str] = {"memcached": "memcached", "embedded": "embedded", "lru": "LRU"}
_SERIES: dict[CachePolicy, int] = {"memcached": 0, "embedded": 1, "lru": 2}
# Figures of a part of the keys are drawn with this many standard errors.
_DRAWN_ERRORS = 2.0
_LATE_S = 1.0
_SHARE_LABEL = "format(100 * datum.value, '~r') + ' %'"
_BYTES_NOTE = "Of the bytes of all values asked for, as far as the trace has their sizes."


def document(checked: CheckedTrace, path: str) -> TraceDocument:
    """The document of what was predicted from a trace in this file."""
    of = checked.predicted
    return TraceDocument(
        eyebrow="What more or less memory would do",
        title=f"{path}: {_headline(of)}",
        facts=list(_facts(of)),
        warnings=list(_warnings(of)),
        parts=[
            *([_checks(checked.checks)] if checked.checks else []),
            _misses(of, "Reads that miss", "reads", lambda point: point.misses),
            _misses(of, "Bytes that miss", "bytes", lambda point: point.byte_misses),
            _rules(of),
        ],
        source=checked,
    )


def _headline(of: PredictedTrace) -> str:
    """A sentence about the middle of the sizes, beside its neighbours."""
    curves = of.prediction.curves
    curve = next((each for each in curves if any(p.misses for p in each.points)), curves[0])
    points = [point for point in curve.points if point.misses]
    if not points:
        return "too few keys were followed to tell anything"
    middle = len(points) // 2
    point, name = points[middle], NAMES[curve.policy]
    text = (
        f"with {_memory(point.memory_bytes)}, {_percent(point.misses)} of the reads miss in {name}"
    )
    neighbours = [points[at] for at in (middle - 1, middle + 1) if 0 <= at < len(points)]
    changes = [
        f"with {_memory(other.memory_bytes)} {_percent(other.misses)}" for other in neighbours
    ]
    return f"{text}; {', '.join(changes)}" if changes else text


def _facts(of: PredictedTrace) -> Iterator[tuple[str, str]]:
    prediction = of.prediction
    yield "reads counted", counted(prediction.reads)
    known = prediction.recorded_hits + prediction.recorded_misses
    if known:
        yield "missed in the trace itself", f"{100 * prediction.recorded_misses / known:.2f} %"
    yield "keys", counted(round(prediction.keys))


def _warnings(of: PredictedTrace) -> Iterator[str]:
    prediction = of.prediction
    if of.origin.sampled > 1:
        yield (
            f"The file has one key of {of.origin.sampled:,}. The sizes of memory are for a "
            "server with all keys."
        )
    if not of.duration_s:
        yield "The trace has no times: nothing expires, and no page moves between slab classes."
    if prediction.fills.without_size:
        yield (
            f"{prediction.fills.without_size:,} writes of unknown size are left out: they store "
            "nothing here."
        )
    if prediction.fills.gets_without_size:
        yield (
            f"{prediction.fills.gets_without_size:,} reads have no size, nor had their keys "
            "before: where they miss, no fill follows. So more reads miss here than would."
        )


def _misses(
    of: PredictedTrace, title: str, unit: str, get: Callable[[CurvePoint], MissRatio | None]
) -> TracePart:
    curves = of.prediction.curves
    rows = [
        [_memory(points[0].memory_bytes), *[_percent(get(point)) for point in points]]
        for points in zip(*[curve.points for curve in curves], strict=True)
    ]
    columns = ["memory", *[NAMES[curve.policy] for curve in curves]]
    notes = list(_curve_notes(of)) if unit == "reads" else [_BYTES_NOTE]
    return TracePart(title, columns, rows, notes, partial(_plot, curves, title, unit, get))


def _curve_notes(of: PredictedTrace) -> Iterator[str]:
    points = [point for curve in of.prediction.curves for point in curve.points]
    least = min(point.part for point in points)
    if any(point.misses and point.misses.error for point in points):
        yield (
            f"± is one standard error: not all keys were followed, but one of {1 / least:,.3g} at "
            "the fewest, and all of the hottest. `--sample all` follows more, and every key for "
            "memcached and LRU."
        )
    if withheld := [point for point in points if point.misses is None]:
        yield _withheld(withheld)
    yield (
        f"The first {100 * of.warm_up:.3g} % of the trace fill the caches and are not counted. A "
        "key that comes for the first time after that misses at every size."
    )


def _withheld(points: Sequence[CurvePoint]) -> str:
    """Why figures of memcached are absent, and the options that show them."""
    least = max(point.least_part for point in points)
    whole = "`--sample all`" if least > 1 / 2 else f"`--sample 1/{int(1 / least)}`"
    remedy = "record more keys" if least > 1 else f"{whole} shows them all"
    return (
        "–: not told. In a part of the keys, slab classes have room for few items: memcached's "
        "misses can be up to 11 points off, more than ± says. The part must have 100 MiB of the "
        f"memory; {remedy}."
    )


def _rules(of: PredictedTrace) -> TracePart:
    fills = of.prediction.fills
    rows = [
        ["set after a get that missed, or of which nothing is known", counted(fills.fills),
         "a fill: stores only where the key is not"],
        ["any other set", counted(fills.updates), "stores"],
        ["get that hit, or of which nothing is known", counted(fills.filled_gets),
         "if it misses here, a fill follows at once"],
        ["get that missed, or whose size is nowhere", counted(fills.unfilled_gets),
         "if it misses here, nothing follows: its fill is in the trace, or there was none"],
    ]  # fmt: skip
    notes = [
        "With another memory other reads miss, and programs store other values. The counts "
        "belong to the keys that were followed.",
        "memcached is simulated with the chunks of its slab classes (factor 1.25, pages of 1 MiB), "
        "expiry, HOT, WARM and COLD, and the pages that it moves between classes; the embedded "
        "server by its own store; LRU charges the same chunks without classes. Client flags, which "
        "take 4 bytes, are not in a trace. An item above 512 KiB takes two of the largest chunks "
        "here; memcached takes a smaller second one. Each class that is used has a page, even "
        "above the limit, as in memcached: with few pages, it takes more than `-m` says.",
        "memcached's hash table and connections need memory besides: --memory is what "
        "`memcached -m` limits, and for the embedded server all of its store.",
    ]
    columns = ["in the trace", "requests", "here"]
    return TracePart("Which fills would have happened", columns, rows, notes, prose=True)


def _checks(checks: Sequence[PredictionCheck]) -> TracePart:
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
    return TracePart("Predicted beside measured", columns, rows, list(_check_notes(checks)))


def _check_notes(checks: Sequence[PredictionCheck]) -> Iterator[str]:
    first = checks[0]
    speed = (
        "in its own time"
        if first.speed == 1
        else f"{first.speed:.3g} times as fast, with expiry times as much shorter, in whole seconds"
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
    get: Callable[[CurvePoint], MissRatio | None],
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


def _line(curve: MissRatioCurve, get: Callable[[CurvePoint], MissRatio | None]) -> ChartLine:
    name = NAMES[curve.policy]
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
    return ChartLine(label=name, marks=marks, series=_SERIES[curve.policy])


def _memory(count: int) -> str:
    """A size of memory in MiB or GiB.

    >>> _memory(64 << 20), _memory(4 << 30), _memory(1634 << 20)
    ('64 MiB', '4 GiB', '1634 MiB')
    """
    mib = count / MIB
    return f"{mib / 1024:g} GiB" if mib >= 1024 and mib % 1024 == 0 else f"{mib:g} MiB"


def _percent(of: MissRatio | None) -> str:
    """A share, such as 12.34 % or 12.34 % ±0.21; – if it is withheld."""
    if of is None:
        return "–"
    value = f"{100 * of.value:.2f} %"
    return f"{value} ±{100 * of.error:.2f}" if of.error else value
