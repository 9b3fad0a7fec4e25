"""`cachemark completion`: print a script that completes verbs and options in a shell."""

from __future__ import annotations

from typing import Literal

from cachemark.cli import app
from cachemark.cli.output import print_text


def completion(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print a script that completes verbs, options and their choices in a shell."""
    print_text(app.generate_completion(shell=shell))
