"""Comparisons of two runs, or of clients, servers or loads of one run.

A comparison is one value, built once. Each form of it is one file, and for text one document.
"""

import msgspec

from cachemark.report.compare import csv_file, junit
from cachemark.report.compare.gate import GateAnswer, check_gate, gate_answer, gate_line, gated
from cachemark.report.compare.in_turns import compare_in_turns
from cachemark.report.compare.model import SCHEMA, ComparisonReport, Gate
from cachemark.report.compare.selection import CellFilter
from cachemark.report.compare.stored import compare_stored
from cachemark.report.compare.tables import document
from cachemark.report.compare.two_cells import compare_cells
from cachemark.report.compare.two_runs import Side, compare_runs
from cachemark.report.compare.within_run import compare_within_run
from cachemark.report.forms import forms
from cachemark.report.json_text import render_json


def _json(compared: ComparisonReport) -> str:
    document = {
        "schema": SCHEMA,
        "regressed": compared.regressed,
        "gate_answer": gate_answer(compared),
        **msgspec.structs.asdict(compared),
    }
    return render_json(document)


RENDERERS = {
    **forms(document, {"csv": csv_file.render, "json": _json}, name="comparison"),
    "junit": junit.render,
}
