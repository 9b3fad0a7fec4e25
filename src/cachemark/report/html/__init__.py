"""The report as one HTML file: no network, no JavaScript needed, light and dark, screen and paper.

Each plot is drawn twice, for a wide and for a narrow screen; a rule in the style sheet shows one.
"""

from cachemark.report.html.render import render

__all__ = ["render"]
