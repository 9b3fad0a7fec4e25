"""Skipped tests may not become more: each reason of the last whole run, against tools/skips.toml.

    python tools/skips.py    fail if a reason is new, or skips more tests than its limit

tests/conftest.py keeps the reasons of a run in .pytest_cache/skips. A limit is the most that one of
the machines that run `.ci/run` skips: what needs root, other hardware or a program outside of
Debian is skipped on some of them.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tools" / "skips.toml"
SKIPS = ROOT / ".pytest_cache" / "skips"


def complaints(reasons: list[str], limits: dict[str, int]) -> list[str]:
    """A line for each reason that no pattern of the table has, and for each limit exceeded."""
    counts = Counter[str]()
    lines: list[str] = []
    for reason in reasons:
        pattern = next((each for each in limits if fnmatchcase(reason, each)), None)
        if pattern is None:
            lines.append(f"skipped for a new reason: {reason}")
        else:
            counts[pattern] += 1
    for pattern, count in counts.items():
        if count > limits[pattern]:
            lines.append(f"{count} tests skipped, {limits[pattern]} at most: {pattern}")
    return lines


def main() -> int:
    """Print how many tests were skipped, and what is wrong; 1 where something is."""
    try:
        reasons: list[str] = json.loads(SKIPS.read_text(encoding="utf-8"))
    except OSError as error:
        print(f"skips: {error}: run the tests first", file=sys.stderr)
        return 1
    limits: dict[str, int] = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    lines = complaints(reasons, limits)
    print(f"skipped tests: {len(reasons)}")
    for line in lines:
        print(line, file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
