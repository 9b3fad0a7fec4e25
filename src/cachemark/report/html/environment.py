"""The environment of templates: every text is escaped, and the page's own parts are at hand."""

from __future__ import annotations

from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

_PAGE = "cachemark.report.html"


@cache
def environment(package: str = _PAGE) -> Environment:
    """The templates of a package, and behind them those of the report's page."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, _PAGE))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The drawings are our own: their texts were escaped when they were written.
    made.filters["drawing"] = Markup
    return made
