"""A plot: what it is called, what it says in words, its Vega-Lite specification, its figures."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from cachemark.report.tables import Table

# Specifications are JSON: their shape is Vega-Lite's affair.
Spec = dict[str, Any]


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """A plot as data. `alt` says what it shows to who cannot see it; `table` has every figure."""

    name: str
    title: str
    caption: str
    alt: str
    spec: Spec
    table: Table


def slug(*parts: str) -> str:
    """A name that is safe in files and addresses."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(parts)).strip("-.").lower() or "plot"
