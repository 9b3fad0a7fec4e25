"""Where text goes: into a file, or to whoever reads stdout."""

from __future__ import annotations

import sys
from pathlib import Path

from cachemark.errors import UsageError


def give(text: str, out: Path | None) -> None:
    """Write text, ended by a line end, into a file or on stdout. Raises UsageError."""
    whole = text if text.endswith("\n") else text + "\n"
    if out is None:
        sys.stdout.write(whole)
        return
    try:
        out.write_text(whole, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--out {out}: cannot be written: {error}") from error
