"""Versions as numbers, so that they can be compared."""

from __future__ import annotations

import re


def version_numbers(version: str) -> list[int]:
    """The numbers of a version such as `1.6.45`; none if it has none."""
    return [int(number) for number in re.findall(r"[0-9]{1,9}", version)]
