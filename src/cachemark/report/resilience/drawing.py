"""The timeline of a cell as SVG: calls by what they came to, with the fault shaded."""

from __future__ import annotations

from cachemark.analysis.resilience.cell import CellOutcome
from cachemark.analysis.resilience.figures import TIMELINE_SLICE_MS

# From the axis up. The colours are Okabe and Ito's, which all readers can tell apart.
COLOURS = {
    "right": "#009e73",
    "false miss": "#56b4e9",
    "timeout": "#e69f00",
    "connection": "#f0e442",
    "server": "#cc79a7",
    "client": "#999999",
    "protocol": "#0072b2",
    "stale": "#d55e00",
    "wrong": "#d50000",
}
_WIDTH, _HEIGHT, _AXIS = 720, 90, 14


def timeline_svg(outcome: CellOutcome) -> str:
    """A stacked bar for each slice of 100 ms; empty if the cell was not played."""
    phases, slices = outcome.phases, outcome.timeline
    if phases is None or not slices:
        return ""
    step = _WIDTH / len(slices)
    most = max(1, *(sum(counts.values()) for counts in slices))

    def x_of(instant_ns: int) -> float:
        return (instant_ns - phases.start_ns) / 1e6 / TIMELINE_SLICE_MS * step

    begin, end = x_of(phases.fault_ns), x_of(phases.fault_end_ns)
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + _AXIS}" role="img" class="timeline">',
        "<title>Calls that ended in each 0.1 s, by what they came to; the fault is shaded</title>",
        f'<rect x="{begin:.1f}" y="0" width="{end - begin:.1f}" height="{_HEIGHT}" class="fault"/>',
    ]
    below = [0.0] * len(slices)
    for answer, colour in COLOURS.items():
        bars: list[str] = []
        for at, counts in enumerate(slices):
            high = counts.get(answer, 0) / most * _HEIGHT
            if high:
                below[at] += high
                x, y, wide = at * step, _HEIGHT - below[at], step * 0.9
                bars.append(f"M{x:.1f} {y:.1f}h{wide:.1f}v{high:.1f}h-{wide:.1f}z")
        if bars:
            parts.append(f'<path fill="{colour}" d="{"".join(bars)}"/>')
    for instant_ns in (phases.start_ns, phases.fault_ns, phases.fault_end_ns, phases.end_ns):
        text = f"{(instant_ns - phases.start_ns) / 1e9:.1f} s"
        x = min(max(x_of(instant_ns), 12), _WIDTH - 14)
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT + _AXIS - 2}">{text}</text>')
    return "".join([*parts, "</svg>"])
