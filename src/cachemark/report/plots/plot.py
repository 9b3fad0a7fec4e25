"""The title of a plot outside of a page, and the name of its file."""

import re

from cachemark.report.cells import shortened
from cachemark.report.document import Plot, Spec
from cachemark.report.plots.palette import light

_TITLE_HEIGHT = 52


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
