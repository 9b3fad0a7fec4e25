"""Output of text to a file or to stdout, and the width of the output."""

import os
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from cachemark.host.atomic_file import made_folder, write_file, write_files
from cachemark.model.errors import UsageError
from cachemark.model.foreign_text import clean
from cachemark.report.console import plain_console, print_words

# Piped output is for programs and for reading later: no row of a table is folded.
_PIPED_COLUMNS = 240
# Fewer columns, of a terminal or in COLUMNS, are ignored: tables would have a letter on a line.
_MIN_COLUMNS = 20
_PROGRESS_S = 5.0


def console(*, stderr: bool = False) -> Console:
    """Stdout or stderr, as wide as the terminal; without a terminal, wide enough for any table."""
    return plain_console(stderr=stderr, width=terminal_width() or _PIPED_COLUMNS)


def terminal_width() -> int | None:
    """The terminal's width, or that of COLUMNS; None if the output is a file or a pipe."""
    stdout = Console()
    if not stdout.is_terminal and "COLUMNS" not in os.environ:
        return None
    return max(_MIN_COLUMNS, stdout.width)


@contextmanager
def progress_lines() -> Generator[Callable[[str], None]]:
    """Shows progress on stderr: one line on a terminal, elsewhere a line every few seconds."""
    shown = plain_console(stderr=True)
    if shown.is_terminal:
        with shown.status("") as status:
            yield lambda text: status.update(escape(text))
        return
    next_s = 0.0

    def tell(text: str) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            print_words(shown, text)
            next_s = time.monotonic() + _PROGRESS_S

    yield tell


def print_text(text: str) -> None:
    """Print text on stdout, with a line end at its end."""
    sys.stdout.write(clean(_with_line_end(text)))


def print_sentences(text: str) -> None:
    """Print text on stdout; a terminal gets lines that end between words."""
    print_words(console(), text)


def write_text(text: str, out: Path | None) -> None:
    """Write text, with a line end at its end, to a file or to stdout. Raises UsageError."""
    if out is None:
        print_text(text)
        return
    write_out(out, _with_line_end(text))


def write_out(out: Path, content: str | bytes, *, option: str = "--out") -> None:
    """Write the file that an option names, and its folder. Raises UsageError."""
    try:
        with made_folder(out.parent):
            write_file(out, content)
    except (OSError, ValueError) as error:
        raise UsageError(f"{option} {out}: cannot be written: {error}") from error


def write_texts(texts: Mapping[str, str], folder: Path) -> None:
    """Write the files of a folder that the option --out names, or none. Raises UsageError."""
    write_contents({name: _with_line_end(text) for name, text in texts.items()}, folder, "--out")


def write_contents(contents: Mapping[str, bytes | str], folder: Path, option: str) -> None:
    """Write the files of a folder that an option names, or none. Raises UsageError."""
    try:
        write_files(folder, contents)
    except (OSError, ValueError) as error:
        raise UsageError(f"{option} {folder}: cannot be written: {error}") from error


def _with_line_end(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"
