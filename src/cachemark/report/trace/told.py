"""The engine's answers in words: a fit, a snapshot, the servers that a trace needs, a new trace."""

from collections.abc import Iterator

from cachemark.model.trace_statistics import ToldTrace, WrittenTrace
from cachemark.report.document import Document
from cachemark.report.trace.document import trace_part


def document(of: ToldTrace) -> Document:
    """The document of it."""
    parts = [trace_part(s.title, s.columns, s.rows, s.notes, prose=s.prose) for s in of.sections]
    return Document(
        kind=of.about, title=of.title, facts=of.facts, warnings=of.warnings, parts=parts
    )


_KEYS = {"plain": "keys as they were", "anonymous": "keys by an irreversible hash"}


def lines_of(written: WrittenTrace, path: str) -> Iterator[str]:
    """Lines about a written trace: its records, its source, and the missing operations."""
    origin, summary = written.origin, written.summary
    yield f"{path}: {written.records:,} records, {written.bytes:,} bytes, from {origin.source}"
    yield f"  {_KEYS.get(origin.keys, origin.keys)}"
    if origin.sampled > 1:
        yield f"  one key of {origin.sampled:,}, with all its operations"
    yield f"  read: {_counts(summary.operations)}"
    if summary.server:
        yield f"  the server counted: {_counts(summary.server)}"
    if summary.other_lines:
        yield f"  not requests: {_counts(summary.other_lines)}"
    yield f"  left out: {_counts(summary.left_out)}"
    if summary.unused_columns:
        yield f"  columns that are not used: {', '.join(summary.unused_columns)}"
    if summary.reconnects:
        yield f"  connected again {summary.reconnects} times: requests in between are missing"


def _counts(counts: dict[str, int]) -> str:
    shown = [f"{count:,} {name}" for name, count in counts.items() if count]
    return ", ".join(shown) or "nothing"
