"""Templates → pages. Makes every text from outside harmless, and escapes it."""

from http import HTTPStatus

from markupsafe import Markup
from starlette.responses import HTMLResponse

from cachemark.model.foreign_text import clean
from cachemark.report.html import column_classes
from cachemark.report.html.environment import environment
from cachemark.web.settings import WebSettings


def _harmless(value: object) -> object:
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def page(settings: WebSettings, name: str, status: int = 200, **values: object) -> HTMLResponse:
    """The page of a template."""
    text = (
        environment("cachemark.web", _harmless)
        .get_template(f"{name}.html.jinja")
        .render(settings=settings, sides_of=column_classes, here=name, **values)
    )
    return HTMLResponse(text, status)


def problem_page(settings: WebSettings, status: int, text: str, remedy: str = "") -> HTMLResponse:
    """A page with an error and its remedy."""
    title = HTTPStatus(status).phrase
    return page(settings, "problem", status, title=title, text=text, remedy=remedy)
