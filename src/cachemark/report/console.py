"""Text on a terminal as it stands: names and messages have colons and numbers of their own."""

from __future__ import annotations

from functools import partial

from rich.console import Console

plain_console = partial(Console, emoji=False, highlight=False)
