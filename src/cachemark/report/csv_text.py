"""Rows as CSV text. No text in it is a formula for a spreadsheet."""

import csv
import io
from collections.abc import Iterable, Sequence

import msgspec

from cachemark.analysis.statistics import Interval
from cachemark.model.foreign_text import clean


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """The rows, each with a line feed at its end."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in rows:
        writer.writerow([clean(cell, "csv") if isinstance(cell, str) else cell for cell in row])
    return out.getvalue()


def flat_csv(values: Sequence[msgspec.Struct]) -> str:
    """A line for each value; a part of a part has both names: `footprint_rss_bytes`."""
    lines = [_flat(msgspec.to_builtins(value)) for value in values]
    columns = list(dict.fromkeys(name for line in lines for name in line))
    return csv_text([columns, *[[line.get(name) for name in columns] for line in lines]])


def _flat(value: dict[str, object]) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, part in value.items():
        if isinstance(part, dict):
            flat |= {f"{name}_{inner}": of for inner, of in _flat(part).items()}
        else:
            flat[name] = part
    return flat


def interval_texts(of: Interval | None) -> list[str]:
    """A figure and its bounds, each with six significant digits; empty where there is none."""
    return [figure_text(part) for part in ((of.value, of.low, of.high) if of else (None,) * 3)]


def figure_text(value: float | None) -> str:
    """A figure with six significant digits; empty where there is none."""
    return "" if value is None else f"{value:.6g}"
