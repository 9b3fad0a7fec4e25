"""Comparisons of two runs, or of clients, servers or loads of one run.

A comparison is one value, built once; there is one file for each renderer.
"""

from collections.abc import Callable

import msgspec

from cachemark.report.compare import csv_file, markdown, terminal
from cachemark.report.compare.across import across
from cachemark.report.compare.selection import Wanted
from cachemark.report.compare.value import Compared, Row
from cachemark.report.compare.within import within
from cachemark.report.json_text import render_json


def _json(compared: Compared, width: int | None) -> str:
    document = {"regressed": compared.regressed, **msgspec.structs.asdict(compared)}
    return render_json(document, width)


RENDERERS: dict[str, Callable[[Compared, int | None], str]] = {
    "table": terminal.render,
    "markdown": markdown.render,
    "csv": csv_file.render,
    "json": _json,
}

__all__ = ["RENDERERS", "Compared", "Row", "Wanted", "across", "within"]
