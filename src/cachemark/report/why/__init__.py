"""The answer of `cachemark why`: one document."""

from cachemark.report.forms import forms
from cachemark.report.json_text import render_json
from cachemark.report.why.document import document

RENDERERS = forms(document, {"json": render_json}, name="why")
