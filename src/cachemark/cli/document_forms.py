"""The options of verbs that print one document: its form, and the file that it is written to."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from cyclopts import Parameter

from cachemark.cli.output import terminal_width, write_text
from cachemark.report.forms import Renderer

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class DocumentForms:
    """The form of a document, and its file."""

    form: Annotated[
        Literal["table", "markdown", "csv", "json", "html"], Parameter(name="--format")
    ] = "table"
    out: Annotated[Path | None, Parameter(help="write to this file")] = None
    json: Annotated[bool, Parameter(help="the same as --format json")] = False

    @property
    def on_screen(self) -> bool:
        """Whether the document is a text on stdout, to be read."""
        return self.form == "table" and self.out is None and not self.json

    def write(self, value: _Value, renderers: Mapping[str, Renderer[_Value]]) -> None:
        """Write the value in the chosen form. Raises UsageError."""
        width = terminal_width() if self.out is None else None
        write_text(renderers["json" if self.json else self.form](value, width), self.out)
