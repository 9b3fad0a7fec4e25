"""Folders that ship beside the Python code: workers, conformance cases, the engine's sources."""

from __future__ import annotations

import os
from pathlib import Path

from cachemark.host.user_copy import user_copy
from cachemark.model.errors import UsageError

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped_folder(name: str, variable: str) -> Path:
    """Return the folder `name`.

    The environment's `variable` comes first, then the checkout, then the installed package's data.
    Raises UsageError if there is no such folder.
    """
    named = os.environ.get(variable)
    candidates = [Path(named)] if named else [_PACKAGE.parents[1] / name, _PACKAGE / f"_{name}"]
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise UsageError(
        f"no folder {name} at {candidates[0]}", f"set {variable} to the folder `{name}`"
    )


def writable_folder(name: str, variable: str) -> Path:
    """Return the folder `name`, as `shipped_folder` does; of an installed package, the user's copy.

    Raises UsageError or OSError.
    """
    folder = shipped_folder(name, variable)
    return user_copy(folder, name) if folder == _PACKAGE / f"_{name}" else folder
