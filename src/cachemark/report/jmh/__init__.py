"""JMH's results as tables, as a page, and for programs."""

from cachemark.report.forms import forms
from cachemark.report.jmh import csv_file
from cachemark.report.jmh.build import build
from cachemark.report.jmh.model import SCHEMA, JmhReport
from cachemark.report.jmh.tables import document
from cachemark.report.json_text import versioned

RENDERERS = forms(document, {"csv": csv_file.render, "json": versioned(SCHEMA)}, name="jmh-report")
