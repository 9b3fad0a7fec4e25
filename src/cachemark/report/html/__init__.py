"""The report as one HTML file. It needs no network and no JavaScript, and it can be printed.

Each plot is drawn twice, for wide and narrow screens; the style sheet shows one of the two. There
is a light and a dark theme. Other pages share its tables, its style sheet and its script.
"""

from cachemark.report.html.environment import style_sheet
from cachemark.report.html.render import column_classes, content_policy, render, script_text
