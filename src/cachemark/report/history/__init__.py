"""The same cell in all runs of a store, over time, machines and versions."""

from collections.abc import Callable

from cachemark.report.history import csv_file, markdown, terminal
from cachemark.report.history.index import Index
from cachemark.report.history.lookup import Asked, look_up
from cachemark.report.history.value import Entry, History, Line
from cachemark.report.json_text import render_json

RENDERERS: dict[str, Callable[[History, int | None], str]] = {
    "table": terminal.render,
    "markdown": markdown.render,
    "csv": csv_file.render,
    "json": render_json,
}

__all__ = ["RENDERERS", "Asked", "Entry", "History", "Index", "Line", "look_up"]
