"""A console that prints text as it is: markup, emoji codes and control characters do nothing."""

from __future__ import annotations

import errno
import io
import os
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

# The width of a text that is not for a terminal.
_TEXT_WIDTH = 120


def text_console(width: int | None) -> Console:
    """A console that keeps what it prints; `text_of` returns it."""
    return plain_console(file=io.StringIO(), width=width or _TEXT_WIDTH, no_color=True)


def text_of(console: Console) -> str:
    """What a `text_console` has printed, with one line end at its end."""
    file = console.file
    if not isinstance(file, io.StringIO):
        raise TypeError("not a text console")
    return file.getvalue().rstrip() + "\n"
