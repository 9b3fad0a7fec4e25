"""A console that prints text as it is: markup, emoji codes and control characters do nothing."""

from __future__ import annotations

import errno
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
