"""`cachemark memory SERVER…`: measure how much of a server's memory an item takes."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape
from rich.table import Table

from cachemark.checks.item_memory import KEY_BYTES, Fill, fills
from cachemark.cli.output import console, print_text
from cachemark.endpoints.servers import parse_spec
from cachemark.model.errors import UsageError
from cachemark.model.footprint import Footprint
from cachemark.report.json_text import json_text

_LARGEST_BYTES = 1 << 20


def memory(
    server: Annotated[str, Parameter(help="a server; `cachemark servers` lists them")],
    /,
    *more: str,
    sizes: Annotated[
        str, Parameter(help="sizes of the values in bytes, such as 100,1000")
    ] = "100,1000,10000",
    json: Annotated[bool, Parameter(negative="", help="print the figures as JSON")] = False,
) -> int:
    """Fill servers until they evict, and compare the stored bytes with the memory used.

    The exit status is 1 if a server could not be filled.
    """
    specs = [parse_spec(text) for text in (server, *more)]
    found = fills(specs, _sizes(sizes))
    if json:
        print_text(json_text(found))
    else:
        _print(found)
    return 1 if any(fill.reason for fill in found) else 0


def _sizes(text: str) -> list[int]:
    parts = text.split(",")
    good = all(part.isdecimal() and 1 <= int(part) <= _LARGEST_BYTES for part in parts)
    if not good:
        raise UsageError(f"--sizes {text}", f"write 100,1000: each 1 to {_LARGEST_BYTES} bytes")
    return list(dict.fromkeys(int(part) for part in parts))


def _print(found: list[Fill]) -> None:
    print_line = console().print
    print_line(
        f"Each server was filled until it evicted the first item; keys have {KEY_BYTES} bytes. "
        "Efficiency is the stored bytes (keys and values) divided by the server's resident memory, "
        "by the growth of that memory, and by the server's own `bytes`."
    )
    table = Table(box=None, pad_edge=False)
    for column in ("server", "value", "items", "stored", "RSS", "of RSS", "of growth", "of own"):
        left = column == "server"
        table.add_column(column, justify="left" if left else "right", overflow="fold")
    for fill in found:
        if fill.footprint is not None:
            table.add_row(escape(fill.server), *_figures(fill, fill.footprint))
    if table.row_count:
        print_line(table)
    for fill in found:
        why = fill.reason or f"the fill ended as {fill.ended}"
        print_line(escape(f"{fill.server}, {fill.value_bytes:,} B: {why}"), soft_wrap=True)


def _figures(fill: Fill, of: Footprint) -> list[str]:
    wholes = (of.rss_bytes, of.growth_bytes, of.reported_bytes)
    return [
        f"{fill.value_bytes:,} B",
        f"{fill.items:,}",
        _megabytes(of.user_bytes),
        _megabytes(of.rss_bytes),
        *["–" if part is None else f"{part:.0%}" for part in map(of.of, wholes)],
    ]


def _megabytes(count: float | None) -> str:
    return "–" if count is None else f"{count / 1e6:.1f} MB"
