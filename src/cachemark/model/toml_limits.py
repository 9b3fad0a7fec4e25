"""TOML text within limits, before it is parsed.

Each dot of a key is a table: a key of 20,000 dots takes gigabytes.
"""

from __future__ import annotations

import re
from pathlib import Path

from cachemark.model.errors import UsageError

_MAX_CHARACTERS = 4 * 2**20
# An experiment needs three.
_MAX_PARTS = 8
_PART = r"(?:[A-Za-z0-9_-]++|\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+')"
_DOT = r"[ \t]*+\.[ \t]*+"
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:{_PART}{_DOT}){{{_MAX_PARTS},}}{_PART}[ \t]*+[=\]]")


def read_toml(path: Path) -> str:
    """The text of a TOML file, within the limits. Raises UsageError.

    No more of it is read than may be in it: a device may have no end.
    """
    try:
        with path.open("rb") as file:
            text = file.read(4 * _MAX_CHARACTERS + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    check_toml(text, str(path))
    return text


def check_toml(text: str, where: str) -> None:
    """Refuse text that is too long, or has a key that is too deep. Raises UsageError."""
    if len(text) > _MAX_CHARACTERS:
        raise UsageError(f"{where}: longer than {_MAX_CHARACTERS // 2**20} MiB")
    deep_key = _DEEP_KEY.search(text)
    if deep_key:
        line = text.count("\n", 0, deep_key.start()) + 1
        raise UsageError(f"{where}:{line}: a key of more than {_MAX_PARTS} parts")
