"""The forms of a value that one document tells: terminal, Markdown, CSV, JSON, HTML."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from cachemark.report import markdown, terminal
from cachemark.report.document import Document

_Value = TypeVar("_Value")
# The width is a terminal's, in columns; the other forms do without.
Renderer = Callable[[_Value, int | None], str]


def forms(
    made: Callable[[_Value], Document], figures: Mapping[str, Callable[[_Value], str]], *, name: str
) -> dict[str, Renderer[_Value]]:
    """The renderers by form. `made` makes the document; `figures` are its forms for programs.

    The page has the figures as files, which are called `name`.
    """

    def page(value: _Value, _width: int | None) -> str:
        # Late, as templates take a while to load and other forms do without.
        from cachemark.report.html.document_page import document_page  # noqa: PLC0415

        files = {f"{name}.{form}": draw(value) for form, draw in figures.items()}
        return document_page(made(value), files)

    return {
        "table": lambda value, width: terminal.draw(made(value), width),
        "markdown": lambda value, _: markdown.draw(made(value)),
        **{form: lambda value, _, of=draw: of(value) for form, draw in figures.items()},
        "html": page,
    }
