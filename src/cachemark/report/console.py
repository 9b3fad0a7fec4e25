"""A console that prints text as it is: markup, emoji codes and control characters do nothing."""

import errno
import io
import os
import re
import textwrap
from functools import partial
from typing import Any

from rich.console import Console
from rich.text import Text

from cachemark.model.foreign_text import clean


class _CleanConsole(Console):
    """Every text, also that of a table's cell, is cleaned before it gets its style."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(clean(text), **options)

    def on_broken_pipe(self) -> None:
        # Rich would end the process here, without a word.
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


plain_console = partial(_CleanConsole, emoji=False, highlight=False)

# No line break divides these: text in backticks, and a command with its options and names.
_OPTION, _NAME = r"--[\w-]+(?:[ =][^\s,;]+)?", r"[^\s,;]*[\d/:@.][^\s,;]*"
_VERB = r"(?:[A-Z_]+=[^\s,;]+ )*cachemark(?:-engine)? (?:setup [a-z]+|run quick|[a-z-]+)"
_WHOLE = re.compile(rf"`[^`]*`|{_VERB}(?: (?:{_OPTION}|{_NAME}))*")
_NO_BREAK = "\u00a0"

# The width of a text that is not for a terminal.
_TEXT_WIDTH = 120


def print_words(out: Console, text: str, *, wrapped: bool = False, style: str = "") -> None:
    """Print sentences; on a terminal, or if `wrapped`, in lines that end between words.

    Elsewhere each line stays one, for programs and for reading later.
    """
    width = out.width if wrapped or out.is_terminal else None
    for line in word_lines(text, width):
        out.print(line, markup=False, soft_wrap=True, style=style)


def word_lines(text: str, width: int | None) -> list[str]:
    """The lines of a text of at most `width` columns; a word or a command that is longer is whole.

    >>> word_lines("Say `cachemark run --resume` again.", 20)
    ['Say', '`cachemark run --resume`', 'again.']
    """
    lines = text.split("\n")
    if width is None:
        return lines
    whole = [_WHOLE.sub(lambda found: found[0].replace(" ", _NO_BREAK), line) for line in lines]
    return [
        part.replace(_NO_BREAK, " ")
        for line in whole
        for part in textwrap.wrap(
            line,
            width,
            subsequent_indent=line[: len(line) - len(line.lstrip(" "))],
            break_long_words=False,
            break_on_hyphens=False,
        )
        or [""]
    ]


def text_console(width: int | None) -> Console:
    """A console that keeps what it prints; `text_of` returns it."""
    return plain_console(file=io.StringIO(), width=width or _TEXT_WIDTH, no_color=True)


def text_of(console: Console) -> str:
    """The text that a `text_console` has printed, with one line end at its end."""
    file = console.file
    if not isinstance(file, io.StringIO):
        raise TypeError("not a text console")
    return file.getvalue().rstrip() + "\n"
