"""The options of verbs that print one document: its form, and the file that it is written to."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from cyclopts import Parameter

from cachemark.cli.output import print_text, terminal_width, write_text
from cachemark.model.errors import UsageError
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

    def __post_init__(self) -> None:
        """Refuse two forms at once: UsageError."""
        if self.json and self.form not in ("table", "json"):
            raise UsageError(f"--json and --format {self.form}", "leave out one of them")

    @property
    def on_screen(self) -> bool:
        """Whether the document is a text on stdout, to be read."""
        return self.form == "table" and self.out is None and not self.json

    def write(self, value: _Value, renderers: Mapping[str, Renderer[_Value]]) -> None:
        """Write the value in the chosen form. Raises UsageError."""
        write_document(value, renderers, "json" if self.json else self.form, self.out)


def write_document(
    value: _Value, renderers: Mapping[str, Renderer[_Value]], form: str, out: Path | None
) -> None:
    """Write the value in a form, to a file or to stdout.

    Raises UsageError if the file cannot be written: then stdout has the table, as a measurement
    took minutes and may be stored nowhere else.
    """
    width = terminal_width()
    try:
        write_text(renderers[form](value, None if out else width), out)
    except UsageError:
        if out:
            print_text(renderers["table"](value, width))
        raise
