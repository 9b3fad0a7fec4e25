"""What constcache's page claims in words, judged by the figures of today. Pure.

The page compares its store with memcached, "in high concurrency". Each of its tables has one number
of processes, so each claim is judged for each of them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import msgspec

from cachemark.model.outcome import Outcome
from cachemark.model.published import PublishedTable
from cachemark.report.originals.figures import store_bytes

FIGURE = "summed_s"
_MB = 2**20
_OWN = "constcache(20)"


class SpeedClaim(msgspec.Struct, frozen=True):
    """How many times as fast as another row constcache(20) is said to be."""

    table: str
    text: str
    other: str
    holds: Callable[[float], bool]


_CLAIMS = (
    SpeedClaim(
        "Write", "its writes are not better than those of uncompressed memcached",
        "memcached (uncompressed)", lambda times: times <= 1,
    ),
    SpeedClaim(
        "Write", "its writes are more than 30 % faster than those of compressed memcached",
        "memcached (compressed)", lambda times: times > 1.3,
    ),
    SpeedClaim(
        "Write", "its writes are more than 30 % faster than those of constcache(16)",
        "constcache(16)", lambda times: times > 1.3,
    ),
    SpeedClaim(
        "Read", "its reads are more than 80 × as fast as those of compressed memcached",
        "memcached (compressed)", lambda times: times > 80,
    ),
)  # fmt: skip


def judged(
    table: PublishedTable, trials: Sequence[Sequence[Outcome]], here: Sequence[float | None]
) -> list[str]:
    """A sentence for each claim that the rows of today can judge; `here` are their figures."""
    if table.figure != FIGURE:
        return []
    names = [row.label.rpartition(",")[0] for row in table.row]
    times = {name: value for name, value in zip(names, here, strict=True) if value}
    judgements = [
        _sentence(claim.text, holds=claim.holds(ratio), seen=f"{ratio:.3g} × as fast")
        for claim in _CLAIMS
        if table.title.startswith(f"{claim.table},")
        and _OWN in times
        and claim.other in times
        and (ratio := times[claim.other] / times[_OWN])
    ]
    return judgements + _memory(table, dict(zip(names, trials, strict=True)))


def _memory(table: PublishedTable, trials: dict[str, Sequence[Outcome]]) -> list[str]:
    """Whether the store takes less than memcached does by its resident size."""
    own = _mean([store_bytes(trial) for trial in trials.get(_OWN, ())])
    server = [trial.server_use for trial in trials.get("memcached (uncompressed)", ())]
    others = _mean([use.rss_after_bytes if use else None for use in server])
    if not own or not others or not table.title.startswith("Write,"):
        return []
    return [
        _sentence(
            "it takes less memory than uncompressed memcached",
            holds=own < others,
            seen=f"{own / _MB:.4g} MB of the store's own account against {others / _MB:.4g} MB "
            "resident",
        )
    ]


def _mean(sizes: Sequence[int | None]) -> float | None:
    known = [size for size in sizes if size]
    return statistics.fmean(known) if known and len(known) == len(sizes) else None


def _sentence(text: str, *, holds: bool, seen: str) -> str:
    return f"claim of {_OWN}: {text}. Here: {'yes' if holds else 'no'}, {seen}"
