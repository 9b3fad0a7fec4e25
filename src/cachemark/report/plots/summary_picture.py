"""A run as one picture for a README: question, answer, bars, machine and date.

There is a panel for each workload and load, with the fastest at the top. It also has the ratios to
the first, with their intervals: they are known better than the rates.
"""

import math
import textwrap
from collections.abc import Sequence
from itertools import groupby
from statistics import fmean

import msgspec

from cachemark.analysis.number_format import count_of, number, time
from cachemark.report.document import Spec
from cachemark.report.model import Report
from cachemark.report.plots.bar_chart import BarItem, axis_end, clipped_note
from cachemark.report.plots.canvas import Canvas
from cachemark.report.plots.layout import LINES_ACROSS, shorten, text_width
from cachemark.report.plots.overview import Panel, panels
from cachemark.report.plots.palette import ColourRole

WIDTH = 860
_MARGIN = 18
_GAP = 24
_FIGURE = 46  # room for a figure behind the longest bar
_RATIO = 128  # room for the ratio behind it
_LEAST_BAR = 90  # the longest bar of panels side by side
_BETWEEN = 7
_TITLE_LINE = 14
_SMALL = 10
# Bars of a tall picture grow to at most this many times their height.
_MOST_STRETCH = 3.0
# Panels share an axis unless the longest bar of one would be shorter than this part of it.
_MIN_PART = 1 / 12


class _NameRow(msgspec.Struct, frozen=True, kw_only=True):
    """A name to the left of a panel, and the place of its bars."""

    label: str
    top: float
    count: int
    thick: float


class _PanelArea(msgspec.Struct, frozen=True, kw_only=True):
    """The place of the bars; the column of names to the left of it has the width `names`."""

    names: float
    left: float
    top: float
    width: float
    height: float


class _Bar(msgspec.Struct, frozen=True, kw_only=True):
    left: float
    middle: float
    thick: float


class _Page(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a picture."""

    report: Report
    answer: str
    title: str
    drawn: Sequence[Panel]


def summary_picture(
    report: Report, answer: str, title: str = "", aspect: float | None = None
) -> Spec | None:
    """The whole picture, with the answer in a sentence; None if nothing was measured.

    With `aspect`, which is width / height, bars are as thick or as long as it takes to fill it.
    """
    drawn = panels(report)
    if not drawn:
        return None
    page = _Page(report=report, answer=answer, title=title or report.header.title, drawn=drawn)
    plain = _drawn(page, WIDTH, 1.0)
    if aspect is None:
        return plain
    missing = WIDTH / aspect - plain["height"]
    if missing < 0:
        return _drawn(page, math.floor(plain["height"] * aspect), 1.0)
    bars = sum(max(_rows(of, 1.0)[1] for of in beside) for beside in _lines(drawn))
    return _drawn(page, WIDTH, min(_MOST_STRETCH, 1 + missing / bars))


def _drawn(page: _Page, full_width: int, stretch: float) -> Spec:
    """The picture at a width, with the height that it takes; `stretch` makes bars thicker."""
    canvas, drawn = Canvas(), page.drawn
    down = _heading(canvas, page.title, page.answer)
    names, columns = _names_width(drawn), _columns(drawn)
    down = _legend(canvas, drawn[0].key, _MARGIN + names, down, full_width)
    each = (full_width - 2 * _MARGIN - (columns - 1) * _GAP) / columns
    for beside in _lines(drawn):
        down = _titles(canvas, beside, names, each, down)
        height = max(_rows(panel, stretch)[1] for panel in beside)
        for index, panel in enumerate(beside):
            left = _MARGIN + names + index * (each + _GAP)
            place = _PanelArea(names=names, left=left, top=down, width=each - names, height=height)
            _panel(canvas, panel, _rows(panel, stretch)[0], place, _shared_end(panel, beside))
        down += height + 30
    down = _footer(canvas, page.report, drawn, down)
    description = f"{page.report.header.title} {page.answer}"
    return canvas.specification(full_width, math.ceil(down), description)


def _heading(canvas: Canvas, title: str, answer: str) -> float:
    down = 28.0
    for line in textwrap.wrap(title, 92):
        canvas.words(_MARGIN, down, line, size=16, bold=True)
        down += 21
    for line in textwrap.wrap(answer, 132):
        canvas.words(_MARGIN, down, line, "faint", size=12)
        down += 17
    return down + 6


def _legend(
    canvas: Canvas, key: Sequence[tuple[ColourRole, str]], left: float, down: float, width: int
) -> float:
    across = left
    for role, words in key:
        if across > left and across + 14 + text_width([words]) > width - _MARGIN:
            across, down = left, down + 16
        canvas.rect(across, across + 9, down - 5, down + 4, role)
        canvas.words(across + 14, down, words, "faint", size=_SMALL)
        across += 14 + 0.9 * text_width([words]) + 16
    return down + 18 if key else down


def _names_width(drawn: Sequence[Panel]) -> float:
    return min(340, text_width([item.label for panel in drawn for item in panel.items]) + 4)


def _columns(drawn: Sequence[Panel]) -> int:
    """Two if panels have room for bars side by side, also in a picture that is made wider."""
    least = _names_width(drawn) + _LEAST_BAR + _FIGURE + _RATIO
    return 2 if len(drawn) > 1 and 2 * least <= WIDTH - 2 * _MARGIN - _GAP else 1


def _lines(drawn: Sequence[Panel]) -> list[Sequence[Panel]]:
    """The panels that are side by side."""
    columns = _columns(drawn)
    return [drawn[start : start + columns] for start in range(0, len(drawn), columns)]


def _rows(panel: Panel, stretch: float) -> tuple[list[_NameRow], float]:
    """The names of a panel, the best first, each with space for its bars; and their height."""
    behind = _behind(panel)
    rows: list[_NameRow] = []
    top, thick = 0.0, stretch * (9.5 if panel.key else 11.0)
    for label, items in sorted(_of_name(panel).items(), key=lambda of: behind.get(of[0], math.inf)):
        rows.append(_NameRow(label=label, top=top, count=len(items), thick=thick))
        top += len(items) * thick + stretch * _BETWEEN
    return rows, top - stretch * _BETWEEN


def _of_name(panel: Panel) -> dict[str, list[BarItem]]:
    return {label: list(items) for label, items in groupby(panel.items, key=lambda of: of.label)}


def _behind(panel: Panel) -> dict[str, float]:
    """How far each name is behind the best: the mean logarithm of its bars, 0 for the best."""
    values = [item.of.value for item in panel.items if item.of and item.of.value]
    found = {
        label: [
            abs(math.log(item.of.value / (max if panel.closed else min)(values)))
            for item in items
            if item.of and item.of.value
        ]
        for label, items in _of_name(panel).items()
    }
    return {label: fmean(logs) for label, logs in found.items() if logs}


def _titles(
    canvas: Canvas, beside: Sequence[Panel], names: float, each: float, down: float
) -> float:
    """The titles above a row of panels; returns where the panels begin."""
    room = each - names
    # The first line has the heading of the ratios behind it; widths are estimated generously.
    heading = text_width([panel.ratio_heading for panel in beside])
    titles = [
        title_lines(panel.title + ("" if panel.closed else ", p99"), room - 0.7 * heading)
        for panel in beside
    ]
    for index, (panel, lines) in enumerate(zip(beside, titles, strict=True)):
        at = _MARGIN + names + index * (each + _GAP)
        for line, words in enumerate(lines):
            canvas.words(at, down + 8 + line * _TITLE_LINE, words, bold=True)
        if len(panel.items) > 1:
            words = panel.ratio_heading
            canvas.words(at + room, down + 8, words, "faint", size=_SMALL, align="right")
    return down + 24 + (max(map(len, titles)) - 1) * _TITLE_LINE


def title_lines(title: str, width: float) -> list[str]:
    """A title in as many lines as it takes, broken between the names of its factors.

    >>> title_lines("set-get · text-blocking-32-threads", 190)
    ['set-get', 'text-blocking-32-threads']
    """
    lines: list[str] = []
    for part in title.split(" · "):
        longer = f"{lines[-1]} · {part}" if lines else part
        if lines and shorten(longer, width) == longer:
            lines[-1] = longer
        else:
            lines.append(shorten(part, width))
    return lines


def _shared_end(panel: Panel, beside: Sequence[Panel]) -> float:
    """The end of a panel's axis: panels of one row with the same unit share it.

    A panel whose bars would become slivers has an axis of its own.
    """
    own = axis_end(panel.items)
    shared = max(axis_end(other.items) for other in beside if other.unit == panel.unit)
    return shared if own > _MIN_PART * shared else own


def _panel(
    canvas: Canvas, panel: Panel, rows: Sequence[_NameRow], area: _PanelArea, last: float
) -> None:
    top = area.top
    with_ratios = len(panel.items) > 1
    scale = (area.width - _FIGURE - (_RATIO if with_ratios else 0)) / last
    for tick in ticks(last):
        at = area.left + tick * scale
        canvas.vertical(at, top - 3, top + area.height + 3, "grid")
        label = number(tick) if panel.closed else time(tick)
        canvas.words(at, top + area.height + 12, _short(label), "faint", size=9, align="center")
    of_name = _of_name(panel)
    for row in rows:
        words = shorten(row.label, area.names - 6, _SMALL)
        canvas.words(
            area.left - 8,
            top + row.top + row.count * row.thick / 2,
            words,
            size=_SMALL,
            align="right",
        )
        for index, item in enumerate(of_name[row.label]):
            middle = top + row.top + (index + 0.5) * row.thick
            at = _Bar(left=area.left, middle=middle, thick=row.thick - 1)
            _bar(canvas, item, at, scale, last)
            if with_ratios:
                end = area.left + area.width
                canvas.words(end, middle, item.ratio, size=9 if panel.key else 10, align="right")


def _bar(canvas: Canvas, item: BarItem, at: _Bar, scale: float, last: float) -> None:
    left, middle, thick = at.left, at.middle, at.thick
    if (of := item.of) is None:
        canvas.words(left + 3, middle, "–", "faint", size=9)
        return
    furthest = of.value
    end, half = left + of.value * scale, thick / 2
    canvas.rect(left, end, middle - half, middle + half, item.role, hollow=item.hollow)
    if of.low is not None and of.high is not None:
        furthest = max(furthest, min(of.high, last))
        _interval(canvas, left + of.low * scale, left + min(of.high, last) * scale, middle)
        if of.high > last:
            canvas.arrow(left + last * scale, middle, "ink")
    # The figure alone: its interval or range is what the line shows.
    figure = item.figure.partition(" ±")[0].partition(" −")[0]
    canvas.words(left + furthest * scale + 5, middle, figure, size=9)


def _interval(canvas: Canvas, low: float, high: float, middle: float) -> None:
    canvas.horizontal(low, high, middle, "paper", 2.5)
    canvas.horizontal(low, high, middle, "ink", 1.2)


def ticks(last: float) -> list[float]:
    """Two to four round numbers from 0 to the end of an axis.

    >>> ticks(34_000.0)
    [0.0, 10000.0, 20000.0, 30000.0]
    """
    power = 10.0 ** math.floor(math.log10(last))
    step = next(of * power for of in (0.2, 0.5, 1.0, 2.0, 5.0) if last < 4 * of * power)
    return [n * step for n in range(math.floor(last / step) + 1)]


def _short(label: str) -> str:
    """12.0 k is 12 k on an axis."""
    figure, blank, unit = label.partition(" ")
    return (figure.rstrip("0").rstrip(".") if "." in figure else figure) + blank + unit


def _footer(canvas: Canvas, report: Report, drawn: Sequence[Panel], down: float) -> float:
    units = list(dict.fromkeys(panel.unit for panel in drawn))
    arrows = next((note for panel in drawn if (note := clipped_note(panel.items))), "")
    marked = any("~" in i.ratio for p in drawn for i in p.items)
    for line in textwrap.wrap(
        f"{' or '.join(units).capitalize()}. {LINES_ACROSS}"
        + (" Hollow: a single trial." if any(i.hollow for p in drawn for i in p.items) else "")
        + (f" {arrows}" if arrows else "")
        + (" ~: 1 is in the interval." if marked else ""),
        150,
    ):
        canvas.words(_MARGIN, down, line, "faint", size=_SMALL)
        down += 14
    canvas.words(_MARGIN, down, provenance(report), "faint", size=_SMALL)
    return down + 16


def _extent(report: Report) -> str:
    if report.rounds is not None:
        return count_of(report.rounds.sittings, "sitting")
    return count_of(report.header.experiment.blocks, "block")


def provenance(report: Report) -> str:
    """The caption: date, machine, blocks and valid trials."""
    header, host = report.header, report.header.host
    virtual = ", virtual" if host.hypervisor else ""
    parts = [
        f"{header.experiment.name}, {header.created_at[:10]}",
        f"{host.cpu_model or 'unknown CPU'}, {len(host.usable_cpus)} CPUs{virtual}",
        host.system,
        f"{_extent(report)}, {report.valid_trials} trials valid",
        f"cachemark {header.cachemark}",
    ]
    return " · ".join(part for part in parts if part)
