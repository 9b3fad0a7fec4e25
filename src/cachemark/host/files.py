"""Small files of /proc and /sys as text; containers hide some, so absence is a value too."""

from __future__ import annotations

from pathlib import Path


def read(path: Path) -> str:
    """A small file's text without the white space round it; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def field(text: str, name: str, separator: str) -> str:
    """The value on the first line that begins with a name; empty where there is none."""
    for line in text.splitlines():
        key, found, value = line.partition(separator)
        if found and key.strip() == name:
            return value.strip()
    return ""


def kib_field(text: str, name: str) -> int | None:
    """A field such as `MemTotal:  1024 kB`, in bytes; None where there is none."""
    words = field(text, name, ":").split()
    return int(words[0]) * 1024 if words and words[0].isdecimal() else None
