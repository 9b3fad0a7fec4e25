"""The answer of `cachemark why`. For text it is one document."""

from collections.abc import Callable

from cachemark.analysis.why.report import WhyReport
from cachemark.report import markdown, terminal
from cachemark.report.json_text import render_json
from cachemark.report.why.document import document

RENDERERS: dict[str, Callable[[WhyReport, int | None], str]] = {
    "table": terminal.form(document),
    "markdown": markdown.form(document),
    "json": render_json,
}
