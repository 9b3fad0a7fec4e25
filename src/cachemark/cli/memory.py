"""`cachemark memory SERVER…`: measure how much of a server's memory an item takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape
from rich.table import Table

from cachemark.checks.item_memory import KEY_BYTES, Fill, drawn_shapes, fills
from cachemark.checks.memory_for_hits import Fetches, HitRatio, MemoryForHits, memory_for_hits
from cachemark.checks.memory_need import MemoryNeed, memory_need
from cachemark.cli import completers
from cachemark.cli.output import console, print_text, progress_lines
from cachemark.endpoints.servers import ServerSpec, parse_spec
from cachemark.model.errors import UsageError
from cachemark.model.footprint import Footprint
from cachemark.model.units import parse_count, parse_size
from cachemark.report.console import print_words
from cachemark.report.json_text import json_text

_LARGEST_BYTES = 1 << 20
_UNSETTLED = (
    "its hit ratio was still changing when the fetches were counted: after a longer time it may be "
    "another"
)


def memory(
    server: Annotated[
        str,
        Parameter(completer=completers.servers, help="a server; `cachemark servers` lists them"),
    ],
    /,
    *more: Annotated[str, Parameter(completer=completers.servers)],
    sizes: Annotated[
        str, Parameter(help="sizes of the values in bytes, such as 100,1000")
    ] = "100,1000,10000",
    items: Annotated[
        str | None, Parameter(help="number of items, such as 5M: find the memory that they need")
    ] = None,
    size: Annotated[
        str, Parameter(help="with --items: size of a value: 120, 1k..4k, lognormal:300:1")
    ] = "100",
    key_length: Annotated[str, Parameter(help="with --items: length of a key: 24, 16..40")] = "20",
    hit_ratio: Annotated[
        float | None,
        Parameter(help="with --items: find the memory for this part of hits, such as 0.99"),
    ] = None,
    distribution: Annotated[
        str,
        Parameter(help="with --hit-ratio: how keys are drawn: uniform, zipf:1, hotspot:0.1:0.9"),
    ] = "zipf:1",
    json: Annotated[bool, Parameter(negative="", help="print the figures as JSON")] = False,
) -> int:
    """Fill servers until they evict, and compare the stored bytes with the memory used.

    With --items: find the memory that these items need, and store them all to see that they fit
    them. With --hit-ratio too: find the least memory in which so many gets find their keys, where
    those that miss store them. The exit status is 1 if a server could not be filled.
    """
    specs = [parse_spec(text) for text in (server, *more)]
    if hit_ratio is not None:
        fetches = _fetches(items, size, key_length, distribution)
        return _for_hits(specs, fetches, hit_ratio, json=json)
    if items is not None:
        return _need(specs, parse_count(items, "--items"), size, key_length, json=json)
    with progress_lines() as progress:
        filled = fills(specs, _sizes(sizes), progress)
    if json:
        print_text(json_text(filled))
    else:
        _print(filled)
    return 1 if any(fill.reason for fill in filled) else 0


def _need(specs: list[ServerSpec], items: int, size: str, key_length: str, *, json: bool) -> int:
    shapes = drawn_shapes(items, size, key_length)
    with progress_lines() as progress:
        needs = [memory_need(spec, shapes, items, progress) for spec in specs]
    if json:
        print_text(json_text(needs))
    else:
        _print_need(needs, f"keys of {key_length} B, values of {size} B")
    return 1 if any(need.reason for need in needs) else 0


def _print_need(found: list[MemoryNeed], shapes: str) -> None:
    out = console()
    first = found[0]
    print_words(
        out,
        f"{first.items:,} items, {shapes}: {_megabytes(first.data_bytes)} of keys and values.",
    )
    table = _table(
        ("server", "memory", "bytes an item", "of it overhead", "RSS", "checked"),
        left=("server", "checked"),
    )
    for need in found:
        if need.memory_mib is not None and need.item_bytes is not None:
            table.add_row(
                escape(need.server),
                f"memory={need.memory_mib}m",
                f"{need.item_bytes:.0f}",
                f"{need.item_bytes - need.data_bytes / need.items:.0f}",
                _megabytes(need.rss_bytes),
                _checked(need),
            )
    if table.row_count:
        out.print(table)
    for need in found:
        if need.reason:
            print_words(out, f"{need.server}: {need.reason}")


def _fetches(items: str | None, size: str, key_length: str, distribution: str) -> Fetches:
    if items is None:
        raise UsageError("--hit-ratio", "add the number of keys: --items 1M")
    count = parse_count(items, "--items")
    return Fetches(items=count, size=size, key_length=key_length, distribution=distribution)


def _for_hits(specs: list[ServerSpec], fetches: Fetches, target: float, *, json: bool) -> int:
    if not 0 < target < 1:
        raise UsageError(f"--hit-ratio {target:g}", "write a part, such as 0.99")
    with progress_lines() as progress:
        found = [memory_for_hits(spec, fetches, target, progress) for spec in specs]
    if json:
        print_text(json_text(found))
    else:
        _print_for_hits(found, fetches)
    return 1 if any(answer.reason for answer in found) else 0


def _print_for_hits(found: list[MemoryForHits], fetches: Fetches) -> None:
    out = console()
    print_words(
        out,
        f"{fetches.items:,} keys of {fetches.key_length} B, values of {fetches.size} B, drawn as "
        f"{fetches.distribution}; a get that misses stores its key. "
        f"{_megabytes(found[0].data_bytes)} of keys and values.",
    )
    table = _table(
        ("server", "memory", "hit ratio", "items held", "all items need", "too small"),
        left=("server", "too small"),
    )
    for answer in found:
        if answer.reached:
            held = answer.reached.held_items
            table.add_row(
                escape(answer.server),
                f"memory={answer.reached.memory_mib}m",
                f"{100 * answer.reached.ratio:.2f} %",
                "–" if held is None else f"{held:,}",
                f"about {answer.all_items_mib}m",
                _seen(answer.missed),
            )
    if table.row_count:
        out.print(table)
    for answer in found:
        if answer.reason:
            print_words(out, f"{answer.server}: {answer.reason}")
        elif answer.reached and not answer.reached.settled:
            print_words(out, f"{answer.server}: {_UNSETTLED}")


def _seen(of: HitRatio | None) -> str:
    return f"memory={of.memory_mib}m: {100 * of.ratio:.2f} %" if of else "–"


def _checked(need: MemoryNeed) -> str:
    """The evidence for the answer, in words."""
    if not need.held:
        return "estimate: too many to be stored here"
    less = f"; too small: {need.too_small_mib}m" if need.too_small_mib else ""
    return f"all were stored, none was evicted{less}"


def _table(columns: Sequence[str], left: Sequence[str]) -> Table:
    """An empty table; the columns that are not at the left have figures."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        justify = "left" if column in left else "right"
        table.add_column(column, justify=justify, overflow="fold")
    return table


def _sizes(text: str) -> list[int]:
    numbers = [parse_size(part, "--sizes") for part in text.split(",")]
    if max(numbers) > _LARGEST_BYTES:
        raise UsageError(f"--sizes {text}", f"write 100,64k: each 1 to {_LARGEST_BYTES} bytes")
    return list(dict.fromkeys(numbers))


def _print(found: list[Fill]) -> None:
    out = console()
    print_words(
        out,
        f"Each server was filled until it evicted the first item; keys have {KEY_BYTES} bytes. "
        "Efficiency is the stored bytes (keys and values) divided by the server's resident memory, "
        "by the growth of that memory, and by the server's own `bytes`.",
    )
    table = _table(
        ("server", "value", "items", "stored", "RSS", "of RSS", "of growth", "of own"),
        left=("server",),
    )
    for fill in found:
        if fill.footprint is not None:
            table.add_row(escape(fill.server), *_figures(fill, fill.footprint))
    if table.row_count:
        out.print(table)
    for fill in found:
        why = fill.reason or f"the fill ended as {fill.ended}"
        print_words(out, f"{fill.server}, {fill.value_bytes:,} B: {why}")


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
