"""A plot: its title, its description in words, its Vega-Lite specification, its figures."""

import re
from typing import Any

import msgspec

from cachemark.report.cells import shortened
from cachemark.report.document import Table
from cachemark.report.plots.palette import light

_TITLE_HEIGHT = 52

# Specifications are JSON: their shape is Vega-Lite's affair.
Spec = dict[str, Any]


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """A plot as data. `alt` describes it for those who cannot see it; `table` has every figure.

    `subtitle` names workload, load and server, if the title does not.
    """

    name: str
    title: str
    caption: str
    alt: str
    spec: Spec
    table: Table
    subtitle: str = ""


def titled(plot: Plot) -> Spec:
    """The specification with the plot's title, for use outside of a page."""
    title = {
        "text": plot.title,
        "subtitle": plot.subtitle,
        "anchor": "start",
        "frame": "bounds",
        "offset": 14,
        "fontSize": 15,
        "subtitleFontSize": 12,
        "subtitleColor": light("faint"),
        "color": light("ink"),
    }
    room = {**plot.spec["padding"], "top": plot.spec["padding"]["top"] + _TITLE_HEIGHT}
    return {**plot.spec, "padding": room, "title": title, "description": plot.alt}


def slug(*parts: str) -> str:
    """A name that is safe in file names and URLs."""
    name = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(parts)).strip("-.").lower()
    return shortened(name) or "plot"
