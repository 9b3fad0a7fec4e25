"""Output of text to a file or to stdout, and the width of the output."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rich.console import Console

from cachemark.model.errors import UsageError
from cachemark.report.console import plain_console

# What is piped is for programs and for reading later: no row of a table is folded.
_PIPED_COLUMNS = 240


def console(*, stderr: bool = False) -> Console:
    """Stdout or stderr, as wide as the terminal; without a terminal, wide enough for any table."""
    return plain_console(stderr=stderr, width=terminal_width() or _PIPED_COLUMNS)


def terminal_width() -> int | None:
    """The terminal's width, or that of COLUMNS; None if the output is a file or a pipe."""
    stdout = Console()
    return stdout.width if stdout.is_terminal or "COLUMNS" in os.environ else None


def write_text(text: str, out: Path | None) -> None:
    """Write text, with a line end at its end, to a file or to stdout. Raises UsageError."""
    whole = text if text.endswith("\n") else text + "\n"
    if out is None:
        sys.stdout.write(whole)
        return
    try:
        out.write_text(whole, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--out {out}: cannot be written: {error}") from error
