"""JMH's results as tables, as a page, and for programs."""

from collections.abc import Callable

from cachemark.report import markdown, terminal
from cachemark.report.jmh import csv_file, html
from cachemark.report.jmh.build import build
from cachemark.report.jmh.model import SCHEMA, JmhReport
from cachemark.report.jmh.tables import document
from cachemark.report.json_text import versioned

RENDERERS: dict[str, Callable[[JmhReport, int | None], str]] = {
    "table": terminal.form(document),
    "markdown": markdown.form(document),
    "csv": csv_file.render,
    "json": versioned(SCHEMA),
    "html": html.render,
}
