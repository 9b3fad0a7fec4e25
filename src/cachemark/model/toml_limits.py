"""Limits on TOML text before it is parsed. Pure.

Each dot of a key is a table: a key of 20,000 dots takes gigabytes.
"""

from __future__ import annotations

import re

from cachemark.model.errors import UsageError

_MAX_CHARACTERS = 4 * 2**20
# An experiment needs three.
_MAX_PARTS = 8
_PART = r"(?:[A-Za-z0-9_-]++|\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+')"
_DOT = r"[ \t]*+\.[ \t]*+"
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:{_PART}{_DOT}){{{_MAX_PARTS},}}{_PART}[ \t]*+[=\]]")


def check_toml(text: str, where: str) -> None:
    """Refuse text that is too long, or has a key that is too deep. Raises UsageError."""
    if len(text) > _MAX_CHARACTERS:
        raise UsageError(f"{where}: longer than {_MAX_CHARACTERS // 2**20} MiB")
    deep_key = _DEEP_KEY.search(text)
    if deep_key:
        line = text.count("\n", 0, deep_key.start()) + 1
        raise UsageError(f"{where}:{line}: a key of more than {_MAX_PARTS} parts")
