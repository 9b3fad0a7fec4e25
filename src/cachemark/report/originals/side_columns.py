"""Columns beside a table's main figure: errors, single runs, CPU times, memory."""

import statistics
from collections.abc import Callable, Sequence

import msgspec

from cachemark.model.outcome import Outcome
from cachemark.model.published import Row
from cachemark.model.server_stats import ServerStats
from cachemark.report.originals.figures import loop_seconds, store_bytes

_MB = 2**20
_ABSENT = "–"


class SideColumn(msgspec.Struct, frozen=True):
    """A column of the page, of today, or of both."""

    title: str
    published: Callable[[Row], str] | None = None
    here: Callable[[Sequence[Outcome]], str] | None = None


def _error(row: Row) -> str:
    error = row.figures.get("error_per_s")
    return _ABSENT if error is None else f"± {error:.10g}"


def _runs(row: Row) -> str:
    return ", ".join(f"{run_ms:g}" for run_ms in row.runs_ms) or _ABSENT


def _published_cpu(row: Row) -> str:
    return _cpu(row.figures["user_s"], row.figures["system_s"], row.figures["total_s"])


def _measured_cpu(trials: Sequence[Outcome]) -> str:
    """Absent if the client does not report its CPU time in each window."""
    seconds = loop_seconds([trial for trial in trials if trial.measure])
    if seconds is None:
        return _ABSENT
    user_s, system_s, _ = seconds
    return _cpu(user_s, system_s, user_s + system_s)


def _cpu(user_s: float, system_s: float, total_s: float) -> str:
    return f"{user_s:.2f} + {system_s:.2f} = {total_s:.2f}"


def _published_memory(row: Row) -> str:
    memory = row.figures.get("memory_mb")
    return _ABSENT if memory is None else f"{memory:g}"


def _server_bytes(trials: Sequence[Outcome]) -> str:
    return _mean_mb([ServerStats(trial.stats_after).number("bytes") for trial in trials])


def _store_bytes(trials: Sequence[Outcome]) -> str:
    return _mean_mb([store_bytes(trial) for trial in trials])


def _server_rss(trials: Sequence[Outcome]) -> str:
    uses = [trial.server_use for trial in trials]
    return _mean_mb([use.rss_after_bytes if use else None for use in uses])


def _mean_mb(sizes: Sequence[float | None]) -> str:
    known = [size for size in sizes if size]
    return f"{statistics.fmean(known) / _MB:.4g}" if sizes and len(known) == len(sizes) else _ABSENT


SIDE_COLUMNS: dict[str, tuple[SideColumn, ...]] = {
    "score_per_s": (SideColumn("error", _error),),
    "real_s": (SideColumn("user + system = total, s", _published_cpu, _measured_cpu),),
    "txn_ms": (SideColumn("runs, ms", _runs),),
    "summed_s": (
        SideColumn("memory, MB", _published_memory),
        SideColumn("store's own account, MB", None, _store_bytes),
        SideColumn("server's bytes, MB", None, _server_bytes),
        SideColumn("server's RSS, MB", None, _server_rss),
    ),
}
