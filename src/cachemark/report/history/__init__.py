"""The same cell in all runs of a store, over time, machines and versions."""

from cachemark.report.forms import forms
from cachemark.report.history import csv_file
from cachemark.report.history.index import RunIndex
from cachemark.report.history.model import SCHEMA, History
from cachemark.report.history.query import HistoryQuery, query_history
from cachemark.report.history.tables import document
from cachemark.report.json_text import versioned

RENDERERS = forms(document, {"csv": csv_file.render, "json": versioned(SCHEMA)}, name="history")
