"""A console that prints text unchanged: names and messages may contain markup characters."""

from __future__ import annotations

from functools import partial

from rich.console import Console

plain_console = partial(Console, emoji=False, highlight=False)
