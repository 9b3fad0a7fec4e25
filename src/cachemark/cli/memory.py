"""`cachemark memory SERVER…`: measure how much of a server's memory an item takes."""

from typing import Annotated

from cyclopts import Parameter

from cachemark.checks.item_memory import drawn_shapes, fills
from cachemark.checks.memory_for_hits import Fetches, memory_for_hits
from cachemark.checks.memory_need import memory_need
from cachemark.cli import completers
from cachemark.cli.document_forms import DocumentForms
from cachemark.cli.output import progress_lines
from cachemark.endpoints.servers import ServerSpec, parse_spec
from cachemark.model.errors import UsageError
from cachemark.model.units import parse_count, parse_size
from cachemark.report.memory import RENDERERS, MemoryReport

_LARGEST_BYTES = 1 << 20


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
    forms: Annotated[DocumentForms | None, Parameter(name="*")] = None,
) -> int:
    """Fill servers until they evict, and compare the stored bytes with the memory used.

    With --items: find the memory that these items need, and store all of them as a check. With
    --hit-ratio too: find the least memory with this hit ratio, where gets that miss store their
    keys. The exit status is 1 if a server could not be filled.
    """
    specs = [parse_spec(text) for text in (server, *more)]
    if hit_ratio is not None:
        report = _for_hits(specs, hit_ratio, _fetches(items, size, key_length, distribution))
    elif items is not None:
        report = _for_items(specs, parse_count(items, "--items"), size, key_length)
    else:
        with progress_lines() as progress:
            report = MemoryReport(shapes="", found=fills(specs, _sizes(sizes), progress))
    (forms or DocumentForms()).write(report, RENDERERS)
    return 1 if any(one.reason for one in report.found) else 0


def _for_hits(specs: list[ServerSpec], hit_ratio: float, fetches: Fetches) -> MemoryReport:
    if not 0 < hit_ratio < 1:
        raise UsageError(f"--hit-ratio {hit_ratio:g}", "write a part, such as 0.99")
    with progress_lines() as progress:
        found = [memory_for_hits(spec, fetches, hit_ratio, progress) for spec in specs]
    shapes = f"{_shapes(fetches.size, fetches.key_length)}, drawn as {fetches.distribution}"
    return MemoryReport(shapes=shapes, found=found)


def _for_items(specs: list[ServerSpec], count: int, size: str, key_length: str) -> MemoryReport:
    shapes = drawn_shapes(count, size, key_length)
    with progress_lines() as progress:
        needs = [memory_need(spec, shapes, count, progress) for spec in specs]
    return MemoryReport(shapes=_shapes(size, key_length), found=needs)


def _shapes(size: str, key_length: str) -> str:
    return f"keys of {key_length} B, values of {size} B"


def _fetches(items: str | None, size: str, key_length: str, distribution: str) -> Fetches:
    if items is None:
        raise UsageError("--hit-ratio", "add the number of keys: --items 1M")
    count = parse_count(items, "--items")
    return Fetches(items=count, size=size, key_length=key_length, distribution=distribution)


def _sizes(text: str) -> list[int]:
    numbers = [parse_size(part, "--sizes") for part in text.split(",")]
    if max(numbers) > _LARGEST_BYTES:
        raise UsageError(f"--sizes {text}", f"write 100,64k: each 1 to {_LARGEST_BYTES} bytes")
    return list(dict.fromkeys(numbers))
