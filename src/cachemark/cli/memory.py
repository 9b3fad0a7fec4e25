"""`cachemark memory SERVER…`: measure how much of a server's memory an item takes."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from cachemark.checks.item_memory import KEY_BYTES, Fill, drawn_shapes, fills
from cachemark.checks.memory_for_hits import Fetches, HitRatio, MemoryForHits, memory_for_hits
from cachemark.checks.memory_need import MemoryNeed, memory_need
from cachemark.cli import completers
from cachemark.cli.output import console, print_text, progress_lines
from cachemark.endpoints.servers import parse_spec
from cachemark.model.errors import UsageError
from cachemark.model.footprint import Footprint
from cachemark.model.units import parse_count, parse_size
from cachemark.report.document import Document, DocumentPart, plain_table
from cachemark.report.json_text import json_text
from cachemark.report.terminal import print_document

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
    json: Annotated[bool, Parameter(help="print the figures as JSON")] = False,
) -> int:
    """Fill servers until they evict, and compare the stored bytes with the memory used.

    With --items: find the memory that these items need, and store all of them as a check. With
    --hit-ratio too: find the least memory with this hit ratio, where gets that miss store their
    keys. The exit status is 1 if a server could not be filled.
    """
    specs = [parse_spec(text) for text in (server, *more)]
    if hit_ratio is not None:
        fetches = _fetches(items, size, key_length, distribution)
        if not 0 < hit_ratio < 1:
            raise UsageError(f"--hit-ratio {hit_ratio:g}", "write a part, such as 0.99")
        with progress_lines() as progress:
            found = [memory_for_hits(spec, fetches, hit_ratio, progress) for spec in specs]
        return _tell(found, _parts_of_hits(found, fetches), json=json)
    if items is not None:
        count = parse_count(items, "--items")
        shapes = drawn_shapes(count, size, key_length)
        with progress_lines() as progress:
            needs = [memory_need(spec, shapes, count, progress) for spec in specs]
        shape = f"keys of {key_length} B, values of {size} B"
        return _tell(needs, _parts_of_needs(needs, shape), json=json)
    with progress_lines() as progress:
        filled = fills(specs, _sizes(sizes), progress)
    return _tell(filled, _parts_of_fills(filled), json=json)


def _tell(
    found: Sequence[Fill | MemoryNeed | MemoryForHits], parts: list[DocumentPart], *, json: bool
) -> int:
    """Print the findings; returns the exit status."""
    if json:
        print_text(json_text(found))
    else:
        print_document(console(), Document(title="", parts=parts))
    return 1 if any(one.reason for one in found) else 0


def _parts(
    head: str, columns: Sequence[str], rows: list[list[str]], below: list[str]
) -> list[DocumentPart]:
    """A sentence, a table, and the lines below it."""
    if not rows:
        return [DocumentPart(items=[head, *below])]
    table = plain_table(columns, rows)
    return [DocumentPart(items=[head]), DocumentPart(table=table, whole=True, items=below)]


def _parts_of_needs(found: list[MemoryNeed], shapes: str) -> list[DocumentPart]:
    first = found[0]
    return _parts(
        f"{first.items:,} items, {shapes}: {_megabytes(first.data_bytes)} of keys and values.",
        ("server", "memory", "bytes an item", "of it overhead", "RSS", "checked"),
        [
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
        [f"{need.server}: {need.reason}" for need in found if need.reason],
    )


def _fetches(items: str | None, size: str, key_length: str, distribution: str) -> Fetches:
    if items is None:
        raise UsageError("--hit-ratio", "add the number of keys: --items 1M")
    count = parse_count(items, "--items")
    return Fetches(items=count, size=size, key_length=key_length, distribution=distribution)


def _parts_of_hits(found: list[MemoryForHits], fetches: Fetches) -> list[DocumentPart]:
    return _parts(
        f"{fetches.items:,} keys of {fetches.key_length} B, values of {fetches.size} B, drawn as "
        f"{fetches.distribution}; a get that misses stores its key. "
        f"{_megabytes(found[0].data_bytes)} of keys and values.",
        ("server", "memory", "hit ratio", "items held", "all items need", "too small"),
        [
            [
                answer.server,
                f"memory={answer.reached.memory_mib}m",
                f"{100 * answer.reached.ratio:.2f} %",
                "–" if answer.reached.held_items is None else f"{answer.reached.held_items:,}",
                f"about {answer.all_items_mib}m",
                _seen(answer.missed),
            ]
            for answer in found
            if answer.reached
        ],
        [
            f"{answer.server}: {answer.reason or _UNSETTLED}"
            for answer in found
            if answer.reason or (answer.reached and not answer.reached.settled)
        ],
    )


def _seen(of: HitRatio | None) -> str:
    return f"memory={of.memory_mib}m: {100 * of.ratio:.2f} %" if of else "–"


def _checked(need: MemoryNeed) -> str:
    """The evidence for the answer, in words."""
    if not need.held:
        return "estimate: too many to be stored here"
    less = f"; too small: {need.too_small_mib}m" if need.too_small_mib else ""
    return f"all were stored, none was evicted{less}"


def _sizes(text: str) -> list[int]:
    numbers = [parse_size(part, "--sizes") for part in text.split(",")]
    if max(numbers) > _LARGEST_BYTES:
        raise UsageError(f"--sizes {text}", f"write 100,64k: each 1 to {_LARGEST_BYTES} bytes")
    return list(dict.fromkeys(numbers))


def _parts_of_fills(found: list[Fill]) -> list[DocumentPart]:
    return _parts(
        f"Each server was filled until it evicted the first item; keys have {KEY_BYTES} bytes. "
        "Efficiency is the stored bytes (keys and values) divided by the server's resident memory, "
        "by the growth of that memory, and by the server's own `bytes`.",
        ("server", "value", "items", "stored", "RSS", "of RSS", "of growth", "of own"),
        [_figures(fill, fill.footprint) for fill in found if fill.footprint is not None],
        [
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
