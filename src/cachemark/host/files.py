"""Reads small files of /proc and /sys. Containers hide some, so a missing file is no error."""

from __future__ import annotations

from pathlib import Path


def read(path: Path) -> str:
    """The text of a small file, stripped; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def field(text: str, name: str, separator: str) -> str:
    """The value on the first line `name<separator>value`; empty if there is none."""
    for line in text.splitlines():
        key, found, value = line.partition(separator)
        if found and key.strip() == name:
            return value.strip()
    return ""


def kib_field(text: str, name: str) -> int | None:
    """A field such as `MemTotal:  1024 kB`, in bytes; None if there is none."""
    words = field(text, name, ":").split()
    return int(words[0]) * 1024 if words and words[0].isdecimal() else None


def is_folder(path: Path) -> bool:
    """Whether it is a folder; no for a name that is longer than names can be."""
    try:
        return path.is_dir()
    except OSError:
        return False
