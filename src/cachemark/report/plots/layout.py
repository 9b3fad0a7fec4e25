"""Layout of all plots: background, fonts, axes, and the space for names and figures."""

import math
from collections.abc import Sequence

import msgspec

from cachemark.analysis.statistics import MIN_INTERVAL_TRIALS
from cachemark.report.document import Spec
from cachemark.report.plots.palette import ColourRole, light

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
FONT = "Helvetica Neue, Helvetica, Arial, sans-serif"
# The meaning of the bounds of a figure in a picture.
LINES_ACROSS = f"Lines across: range of the trials, 95 % interval from {MIN_INTERVAL_TRIALS} on."
# The two widths in which a page has each plot: one for a screen, one for a telephone.
WIDE, NARROW = 520, 336
# Below this many pixels names stand above bars, and a key above lines, as on a telephone.
_WIDE = 480
# Generous, as a reader's machine may lack all of the named fonts.
_LETTER = 6.8
_WIDE_LETTER = 7.2
_EDGE = 6
_LABEL_ROOM = 14  # beside a name


class PlotArea(msgspec.Struct, frozen=True, kw_only=True):
    """The width of the plot itself, and of the columns at its left and right."""

    left: int
    width: int
    right: int

    @property
    def names_above(self) -> bool:
        """Whether the names have no column of their own."""
        return not self.left


def is_wide(width: int) -> bool:
    """Whether the names fit into a column beside the bars."""
    return width >= _WIDE


def plot_area(width: int, names: Sequence[str], figures: Sequence[str]) -> PlotArea:
    """Divide the total width: names at the left if they fit, figures at the right."""
    right = min(170, text_width(figures) + 12)
    left = label_width(names, round(0.44 * width)) if is_wide(width) else 0
    if not left:
        right = 12
    return PlotArea(left=left, width=width - (left or _EDGE) - right, right=right)


def text_width(texts: Sequence[str]) -> int:
    """The approximate width of the widest text, in pixels."""
    return math.ceil(_LETTER * max((len(text) for text in texts), default=0))


def label_width(texts: Sequence[str], most: int) -> int:
    """The width of a column in which no text is shortened, but for very long ones."""
    longest = max((len(text) for text in texts), default=0)
    return min(most, math.ceil(_WIDE_LETTER * longest) + _LABEL_ROOM)


def shorten(words: str, width: float, size: int = 11) -> str:
    """The words, or as much of both their ends as surely fits: names often differ at the end.

    Vega's own limit uses this machine's fonts, not the reader's.
    """
    most = max(6, int(width * 11 / (size * _WIDE_LETTER)))
    if len(words) <= most:
        return words
    tail = most * 2 // 3
    return f"{words[: most - tail - 1]}…{words[-tail:]}"


def specification(
    area: PlotArea, height: int, layers: list[Spec], *, top: int = 6, bottom: int = 42
) -> Spec:
    """Layers with the common style; the outer size is exact, so that figures are aligned."""
    return {
        "$schema": SCHEMA,
        "width": area.width,
        "height": height,
        "padding": {"left": area.left or _EDGE, "right": area.right, "top": top, "bottom": bottom},
        "autosize": "none",
        "background": light("paper"),
        "layer": layers,
        "config": _CONFIG,
    }


_CONFIG: Spec = {
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "domain": False,
        "ticks": False,
        "gridColor": light("grid"),
        "labelColor": light("faint"),
        "titleColor": light("faint"),
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelPadding": 6,
        "titlePadding": 8,
    },
    "text": {"fontSize": 11, "color": light("ink")},
}


def text_layer(at: dict[str, float], words: str, role: ColourRole = "ink", **mark: object) -> Spec:
    """A layer with one text at a fixed place, in pixels from the plot's upper left corner."""
    return {
        "data": {"values": [{}]},
        "mark": {
            "type": "text",
            "align": "left",
            "baseline": "middle",
            "color": light(role),
            "text": words,
            "clip": False,
            "aria": False,
            **mark,
        },
        "encoding": {name: {"value": value} for name, value in at.items()},
    }


# Axis labels are written by Vega: 12 k, 1.5 M.
SI_LABEL = "replace(format(datum.value, '~s'), /([kMG])$/, ' $1')"
MEMORY_LABEL = "replace(format(datum.value, '~s'), /([kMG]?)$/, ' $1B')"
TIMES_LABEL = "format(datum.value, '~r') + ' ×'"
SHARE_LABEL = "format(100 * datum.value, '.0f') + ' %'"
TIME_LABEL = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, '~r') + ' s' : "
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~r') + ' ms' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '~r') + ' µs' : "
    "format(datum.value, '~r') + ' ns'"
)


def log_axis(low: float, high: float) -> tuple[float, float, list[float]]:
    """Bounds of a logarithmic axis for two values, and its ticks: 1, 2, 5 or powers of ten."""
    steps = [m * 10.0**e for e in range(-9, 13) for m in (1, 2, 5)]
    floor = max((step for step in steps if step <= low), default=steps[0])
    ceiling = min((step for step in steps if step >= high), default=steps[-1])
    if floor == ceiling:
        ceiling = steps[min(steps.index(floor) + 1, len(steps) - 1)]
    ticks = [step for step in steps if floor <= step <= ceiling]
    if len(ticks) > 8:
        ticks = [t for t in ticks if math.log10(t) % 1 in (0.0,) or t in (floor, ceiling)]
    return floor, ceiling, ticks


def six_digits(value: float) -> float:
    """Round to six significant digits; a plot shows no more, and the page becomes smaller."""
    return float(f"{value:.6g}")


def separate(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places moved apart until each is `gap` from the next, in their order, within bounds.

    Labels of lines that end close together would otherwise cover each other.
    """
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = [min(max(places[index], low), high) for index in order]
    for i in range(1, len(moved)):
        moved[i] = max(moved[i], moved[i - 1] + gap)
    over = max(0.0, moved[-1] - high) if moved else 0.0
    for i in range(len(moved) - 1, -1, -1):
        limit = high - gap * (len(moved) - 1 - i)
        moved[i] = min(moved[i], limit) if over else moved[i]
    separated = [0.0] * len(places)
    for index, place in zip(order, moved, strict=True):
        separated[index] = place
    return separated
