"""The memory of servers as a document, as CSV and as JSON. Pure."""

from collections.abc import Sequence

import msgspec

from cachemark.model.footprint import Footprint
from cachemark.model.server_memory import Fill, MemoryForHits, MemoryNeed
from cachemark.report.csv_text import flat_csv
from cachemark.report.document import Document, DocumentPart, plain_table
from cachemark.report.forms import forms
from cachemark.report.json_text import json_text

_UNSETTLED = (
    "its hit ratio was still changing when the fetches were counted: after a longer time it may be "
    "another"
)


class MemoryReport(msgspec.Struct, frozen=True, kw_only=True):
    """One answer for each server, or for each fill of it, and the items in words."""

    shapes: str
    found: Sequence[Fill] | Sequence[MemoryNeed] | Sequence[MemoryForHits]


def document(report: MemoryReport) -> Document:
    """The items and their settings; a row for each server; missing figures with the reason."""
    if needs := [one for one in report.found if isinstance(one, MemoryNeed)]:
        return _needs(needs, report.shapes)
    if hits := [one for one in report.found if isinstance(one, MemoryForHits)]:
        return _hits(hits, report.shapes)
    return _fills([one for one in report.found if isinstance(one, Fill)])


def _made(
    *, head: str, columns: Sequence[str], rows: list[list[str]], below: list[str]
) -> Document:
    table = plain_table(columns, rows) if rows else None
    return Document(
        title="The memory of servers",
        lines=[head],
        parts=[
            DocumentPart(items=[head], on="console"),
            DocumentPart(table=table, whole=True, items=below),
        ],
    )


RENDERERS = forms(
    document,
    {"csv": lambda report: flat_csv(report.found), "json": lambda report: json_text(report.found)},
    name="memory",
)


def _needs(found: list[MemoryNeed], shapes: str) -> Document:
    first = found[0]
    return _made(
        head=f"{first.items:,} items, {shapes}: {_megabytes(first.data_bytes)} of keys and values.",
        columns=("server", "memory", "bytes an item", "of it overhead", "RSS", "checked"),
        rows=[
            [
                need.server,
                f"memory={need.memory_mib}m",
                f"{need.item_bytes:.0f}",
                f"{need.item_bytes - need.data_bytes / need.items:.0f}",
                _megabytes(need.rss_bytes),
                _checked(need),
            ]
            for need in found
            if need.memory_mib is not None and need.item_bytes is not None
        ],
        below=[f"{need.server}: {need.reason}" for need in found if need.reason],
    )


def _hits(found: list[MemoryForHits], shapes: str) -> Document:
    return _made(
        head=f"{found[0].items:,} items, {shapes}; a get that misses stores its key. "
        f"{_megabytes(found[0].data_bytes)} of keys and values.",
        columns=("server", "memory", "hit ratio", "items held", "all items need", "too small"),
        rows=[
            [
                answer.server,
                f"memory={answer.reached.memory_mib}m",
                f"{100 * answer.reached.ratio:.2f} %",
                "–" if answer.reached.held_items is None else f"{answer.reached.held_items:,}",
                f"about {answer.all_items_mib}m",
                f"memory={of.memory_mib}m: {100 * of.ratio:.2f} %"
                if (of := answer.missed)
                else "–",
            ]
            for answer in found
            if answer.reached
        ],
        below=[
            f"{answer.server}: {answer.reason or _UNSETTLED}"
            for answer in found
            if answer.reason or (answer.reached and not answer.reached.settled)
        ],
    )


def _checked(need: MemoryNeed) -> str:
    if not need.held:
        return "estimate: too many to be stored here"
    less = f"; too small: {need.too_small_mib}m" if need.too_small_mib else ""
    return f"all were stored, none was evicted{less}"


def _fills(found: list[Fill]) -> Document:
    return _made(
        head="Each server was filled until it evicted the first item; keys have "
        f"{found[0].key_bytes} bytes. Efficiency is the stored bytes (keys and values) divided by "
        "the server's resident memory, by its growth, and by the server's own `bytes`.",
        columns=("server", "value", "items", "stored", "RSS", "of RSS", "of growth", "of own"),
        rows=[_figures(fill, fill.footprint) for fill in found if fill.footprint is not None],
        below=[
            f"{fill.server}, {fill.value_bytes:,} B: "
            f"{fill.reason or f'the fill ended as {fill.ended}'}"
            for fill in found
        ],
    )


def _figures(fill: Fill, of: Footprint) -> list[str]:
    wholes = (of.rss_bytes, of.growth_bytes, of.reported_bytes)
    return [
        fill.server,
        f"{fill.value_bytes:,} B",
        f"{fill.items:,}",
        _megabytes(of.user_bytes),
        _megabytes(of.rss_bytes),
        *["–" if part is None else f"{part:.0%}" for part in map(of.of, wholes)],
    ]


def _megabytes(count: float | None) -> str:
    return "–" if count is None else f"{count / 1e6:.1f} MB"
