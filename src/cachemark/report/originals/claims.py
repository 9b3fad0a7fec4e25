"""Claims of constcache's page, judged by the figures of today. Pure.

The page compares its store with memcached, some of it "in high concurrency". Each of its tables has
one number of processes, so each claim is judged for each of them, by the interval of a ratio over
the trials. Where the page has no number, the text says which one is taken. Two stores stand for
constcache: one of the same kind, and its own.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from cachemark.analysis.number_format import interval
from cachemark.analysis.rounds.estimate import mean_of_logs
from cachemark.analysis.statistics import CONFIDENCE, Interval
from cachemark.model.outcome import Outcome
from cachemark.model.published import PublishedTable
from cachemark.model.shipped_rows import shipped_rows
from cachemark.report.originals.figures import measured_value, store_bytes

FIGURE = "summed_s"
# Like the other row: the same store with 2^16 slots.
_FEW_SLOTS = "few slots"
# The names of a store's rows begin so; and what it is.
_STORES = {"constcache": "php/shared-store", "php/constcache": "php/constcache, its own store"}
# The page's tables of 50 and 100 processes.
_HIGH_CONCURRENCY = 50
_Figure = Literal["seconds", "store_bytes", "server_bytes"]


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """A row of today: figures by block. A figure that a trial lacks is absent."""

    seconds: dict[int, float]
    store_bytes: dict[int, float]
    server_bytes: dict[int, float]


class _Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A claim of the tables that begin with `table`: a ratio, and the limit that it is to keep.

    The ratio is `over` of the first row to `under` of the second: of the store with 2^20 slots and
    of `other`, or the other way round if `of_other`. `words` say what the ratio is.
    """

    table: str
    text: str
    other: str
    limit: float
    is_above: bool
    only_high: bool = False
    of_other: bool = True
    over: _Figure = "seconds"
    under: _Figure = "seconds"
    words: str = "× as fast"


def judged(table: PublishedTable, trials: Sequence[Sequence[Outcome]]) -> list[str]:
    """A sentence for each claim that the rows of today can judge."""
    if table.figure != FIGURE:
        return []
    names = [row.label.rpartition(",")[0] for row in table.row]
    rows = {name: _row(own, table) for name, own in zip(names, trials, strict=True)}
    sentences: list[str] = []
    for claim in shipped_rows(Path(__file__).with_name("claims.toml"), "claim", _Claim):
        if not table.title.startswith(f"{claim.table},"):
            continue
        answers = [(what, _judge(claim, store, rows, table)) for store, what in _STORES.items()]
        said = "; ".join(f"{what}: {answer}" for what, answer in answers if answer)
        if said:
            sentences.append(f"claim: {claim.text}. Here: {said}")
    return sentences


def _row(trials: Sequence[Outcome], table: PublishedTable) -> _Row:
    seconds, own, server = {}, {}, {}
    for trial in trials:
        block = trial.trial.block
        seconds[block] = measured_value([trial], table)
        own[block] = store_bytes(trial)
        server[block] = trial.server_use.rss_after_bytes if trial.server_use else None
    return _Row(seconds=_known(seconds), store_bytes=_known(own), server_bytes=_known(server))


def _known(figures: Mapping[int, float | None]) -> dict[int, float]:
    return {block: figure for block, figure in figures.items() if figure}


def _judge(claim: _Claim, store: str, rows: Mapping[str, _Row], table: PublishedTable) -> str:
    """Yes, no or not settled, and the ratio; empty without trials of both rows."""
    own = rows.get(f"{store}(20)")
    other = rows.get(f"{store}(16)" if claim.other == _FEW_SLOTS else claim.other)
    if own is None or other is None:
        return ""
    first, second = (other, own) if claim.of_other else (own, other)
    over: dict[int, float] = getattr(first, claim.over)
    under: dict[int, float] = getattr(second, claim.under)
    blocks = sorted(over.keys() & under.keys())
    if not blocks:
        return ""
    logs = [math.log(over[block] / under[block]) for block in blocks]
    ratio = mean_of_logs(logs).ratio(CONFIDENCE)
    processes = int(table.title.split(", ")[1].split()[0])  # of `Write, 10 processes`
    return f"{_answer(claim, ratio, processes)}, {interval(ratio, '{:.3g}')} {claim.words}"


def _answer(claim: _Claim, ratio: Interval, processes: int) -> str:
    if claim.only_high and processes < _HIGH_CONCURRENCY:
        return f"not settled (it is about {_HIGH_CONCURRENCY} processes and more)"
    if ratio.low is None or ratio.high is None:
        return "not settled (a single pair of trials)"
    if ratio.low <= claim.limit < ratio.high:
        return "not settled"
    return "yes" if (ratio.low > claim.limit) == claim.is_above else "no"
