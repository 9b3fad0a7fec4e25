"""`cachemark man`: write manual pages of what `--help` prints: the program's, and each verb's."""

import io
from pathlib import Path
from typing import Any

from cyclopts.help import HelpEntry, HelpPanel
from rich.console import Console, ConsoleOptions

from cachemark import __version__
from cachemark.cli.output import write_texts
from cachemark.cli.program import app

_PROGRAM = "cachemark"
# No line is folded: `man` does that.
_COLUMNS = 100_000


def man(folder: Path) -> None:
    """Write manual pages into a folder, such as ~/.local/share/man/man1.

    `man cachemark` is about the program, `man cachemark-run` about a verb.
    """
    help_flags = {"--help", "-h", "--version"}
    verbs = [name for name in app if name not in help_flags]
    names = {_PROGRAM: [], **{f"{_PROGRAM}-{verb}": [verb] for verb in verbs}}
    write_texts({f"{name}.1": _page(name, words) for name, words in names.items()}, folder)


class _Collector:
    """Stands in for cyclopts' formatter and keeps the parts of a help text.

    cyclopts' protocol fixes the names of the arguments.
    """

    def __init__(self) -> None:
        self.usage = ""
        self.description = ""
        self.panels: list[HelpPanel] = []

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:  # noqa: ARG002
        if panel.entries:
            self.panels.append(panel)

    def render_usage(self, console: Any, options: Any, usage: Any) -> None:  # noqa: ARG002
        self.usage = _plain(usage).removeprefix("Usage:").strip()

    def render_description(self, console: Any, options: Any, description: Any) -> None:  # noqa: ARG002
        self.description = _plain(description)


def _page(name: str, words: list[str]) -> str:
    """The page of a verb, or of the program, in the macros of man(7)."""
    parts, epilogue = _help_parts(words)
    summary, _, rest = parts.description.partition("\n")
    lines = [f'.TH {name} 1 "" "{_PROGRAM} {__version__}"', ".SH NAME"]
    lines += [f"{_escape(name)} \\- {_escape(summary)}", ".SH SYNOPSIS", _escape(parts.usage)]
    if rest.strip():
        lines += [".SH DESCRIPTION", _escape(rest.strip()).replace("\n\n", "\n.PP\n")]
    for panel in parts.panels:
        lines.append(f".SH {_escape(_plain(panel.title).upper())}")
        for entry in panel.entries:
            labels = ", ".join(entry.display_labels_with_metavar)
            lines += [".TP", f"\\fB{_escape(labels)}\\fR", _escape(_meaning(entry))]
    title, _, statuses = epilogue.partition(":")
    lines += [f".SH {title.upper()}", ".nf", _escape(statuses.strip("\n ")), ".fi"]
    return "\n".join(lines) + "\n"


def _help_parts(words: list[str]) -> tuple[_Collector, str]:
    """The parts of a help text, and the text that cyclopts prints below them."""
    parts = _Collector()
    below = io.StringIO()
    usual = app.help_formatter
    app.help_formatter = parts
    try:
        app.help_print(words, console=Console(file=below, width=_COLUMNS))
    finally:
        app.help_formatter = usual
    return parts, below.getvalue().strip()


def _meaning(entry: HelpEntry) -> str:
    notes = [f"[choices: {', '.join(entry.choices)}]"] if entry.choices else []
    if entry.default is not None:
        notes.append(f"[default: {entry.default}]")
    return " ".join([_plain(entry.description), *notes])


def _plain(value: Any) -> str:
    file = io.StringIO()
    Console(file=file, width=_COLUMNS).print(value or "", markup=False, highlight=False)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()).strip()


def _escape(text: str) -> str:
    """Text without requests and escapes of roff, and with minus signs instead of hyphens."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").split("\n")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)
