"""The report as one HTML file. It needs no network and no JavaScript, and it can be printed.

Each plot is drawn twice, for wide and narrow screens; the style sheet shows one of the two. There
is a light and a dark theme.
"""

from cachemark.report.html.render import render

__all__ = ["render"]
