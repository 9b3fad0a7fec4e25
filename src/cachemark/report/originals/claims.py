"""What constcache's page claims in words, judged by the figures of today. Pure.

The page compares its store with memcached, "in high concurrency". Each of its tables has one number
of processes, so each claim is judged for each of them. Where the page has no number, the text says
which one is taken. Two stores stand for constcache: one of the same kind, and its own.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

import msgspec

from cachemark.model.outcome import Outcome
from cachemark.model.published import PublishedTable
from cachemark.report.originals.figures import store_bytes

FIGURE = "summed_s"
_MB = 2**20
_COMPRESSED = "memcached (compressed)"
_UNCOMPRESSED = "memcached (uncompressed)"
# The names of a store's rows begin so; and what it is.
_STORES = {"constcache": "php/shared-store", "php/constcache": "php/constcache, its own store"}


class _Cell(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a row of today."""

    seconds: float | None
    store_bytes: float | None
    server_bytes: float | None


_Cells = Mapping[str, _Cell]


class _Claim(msgspec.Struct, frozen=True):
    """A claim of tables that begin with a word; `judge` gives an answer by the rows of a store."""

    table: str
    text: str
    judge: Callable[[str, _Cells], str]


def judged(
    table: PublishedTable, trials: Sequence[Sequence[Outcome]], here: Sequence[float | None]
) -> list[str]:
    """A sentence for each claim that the rows of today can judge; `here` are their figures."""
    if table.figure != FIGURE:
        return []
    names = [row.label.rpartition(",")[0] for row in table.row]
    cells = {
        name: _cell(own, seconds) for name, own, seconds in zip(names, trials, here, strict=True)
    }
    sentences: list[str] = []
    for claim in _CLAIMS:
        if not table.title.startswith(f"{claim.table},"):
            continue
        answers = [(what, claim.judge(store, cells)) for store, what in _STORES.items()]
        said = "; ".join(f"{what}: {answer}" for what, answer in answers if answer)
        if said:
            sentences.append(f"claim: {claim.text}. Here: {said}")
    return sentences


def _cell(trials: Sequence[Outcome], seconds: float | None) -> _Cell:
    uses = [trial.server_use for trial in trials]
    return _Cell(
        seconds=seconds or None,
        store_bytes=_mean([store_bytes(trial) for trial in trials]),
        server_bytes=_mean([use.rss_after_bytes if use else None for use in uses]),
    )


def _mean(sizes: Sequence[int | None]) -> float | None:
    known = [size for size in sizes if size]
    return statistics.fmean(known) if known and len(known) == len(sizes) else None


def _times_as_fast(other: str, holds: Callable[[float], bool]) -> Callable[[str, _Cells], str]:
    """Judge how many times as fast as another row a store with 2^20 slots is."""

    def judge(store: str, cells: _Cells) -> str:
        own, than = _pair(store, other, cells)
        if own is None or than is None or not own.seconds or not than.seconds:
            return ""
        ratio = than.seconds / own.seconds
        return _answer(holds=holds(ratio), seen=f"{ratio:.3g} × as fast")

    return judge


def _less_than_the_server(store: str, cells: _Cells) -> str:
    own, server = _pair(store, _UNCOMPRESSED, cells)
    if own is None or server is None or not own.store_bytes or not server.server_bytes:
        return ""
    size, other = own.store_bytes, server.server_bytes
    seen = f"{size / _MB:.4g} MB of its own account against {other / _MB:.4g} MB resident"
    return _answer(holds=size < other, seen=seen)


def _little_more_than_with_few_slots(store: str, cells: _Cells) -> str:
    own, few = _pair(store, _FEW_SLOTS, cells)
    if own is None or few is None or not own.store_bytes or not few.store_bytes:
        return ""
    more = own.store_bytes / few.store_bytes - 1
    return _answer(holds=more <= 0.1, seen=f"{100 * more:.2g} % more")


def _pair(store: str, other: str, cells: _Cells) -> tuple[_Cell | None, _Cell | None]:
    """The store with 2^20 slots, and the row to compare it with."""
    return cells.get(f"{store}(20)"), cells.get(other or f"{store}(16)")


def _answer(*, holds: bool, seen: str) -> str:
    return f"{'yes' if holds else 'no'}, {seen}"


# As the other row: the same store with 2^16 slots.
_FEW_SLOTS = ""
_CLAIMS = (
    _Claim(
        "Write", "the writes of constcache(20) are not better than those of uncompressed memcached",
        _times_as_fast(_UNCOMPRESSED, lambda times: times <= 1),
    ),
    _Claim(
        "Write", "its writes are more than 30 % faster than those of compressed memcached",
        _times_as_fast(_COMPRESSED, lambda times: times > 1.3),
    ),
    _Claim(
        "Write", "its writes are more than 30 % faster than those of constcache(16)",
        _times_as_fast(_FEW_SLOTS, lambda times: times > 1.3),
    ),
    _Claim("Write", "it takes less memory than uncompressed memcached", _less_than_the_server),
    _Claim(
        "Write", "its memory does not increase obviously (by more than 10 %) over constcache(16)",
        _little_more_than_with_few_slots,
    ),
    _Claim(
        "Read", "the reads of constcache(20) are more than 80 × as fast as those of compressed "
        "memcached", _times_as_fast(_COMPRESSED, lambda times: times > 80),
    ),
    _Claim(
        "Read", "they are dozens of times (24 × or more) as fast as uncompressed memcached's",
        _times_as_fast(_UNCOMPRESSED, lambda times: times >= 24),
    ),
    _Claim(
        "Read", "the reads of constcache(16) fall sharply: constcache(20) is more than 2 × as fast",
        _times_as_fast(_FEW_SLOTS, lambda times: times > 2),
    ),
)  # fmt: skip
