"""Which of two clients is faster: paired by block, with a margin declared beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from cachemark.outcome import Cell, Outcome
from cachemark.statistics.interval import Interval, paired_ratio

ALPHA = 0.05
Answer = Literal["faster", "slower", "equivalent", "inconclusive"]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A client against a baseline in one group: the ratio of their ops/s, and what it means."""

    client: str
    baseline: str
    server: str
    workload: str
    load: str
    ratio: Interval
    pairs: int
    answer: Answer
    p_holm: float | None


def compare(
    outcomes: Sequence[Outcome], baseline: str, group: Cell, margin_percent: float
) -> list[Comparison]:
    """Compare every client of a group (server, workload, load of `group`) with the baseline.

    Only blocks in which both have a valid trial count. `faster` and `slower` need an interval
    that excludes 1, a ratio beyond the margin, and p < 0.05 after Holm's correction over the
    group; `equivalent` needs the whole interval inside 1 ± margin.
    """
    rates = _rates(outcomes, group)
    base = rates.get(baseline, {})
    ratios: dict[str, tuple[Interval, int]] = {}
    for client, of_client in rates.items():
        blocks = sorted(set(of_client) & set(base))
        if client == baseline or not blocks:
            continue
        first, second = [of_client[b] for b in blocks], [base[b] for b in blocks]
        ratios[client] = (paired_ratio(first, second), len(blocks))
    corrected = holm({c: ratio.p for c, (ratio, _) in ratios.items() if ratio.p is not None})
    return [
        Comparison(
            client=client,
            baseline=baseline,
            server=group.server,
            workload=group.workload,
            load=group.load,
            ratio=ratio,
            pairs=pairs,
            answer=_answer(ratio, corrected.get(client), margin_percent / 100),
            p_holm=corrected.get(client),
        )
        for client, (ratio, pairs) in ratios.items()
    ]


def _rates(outcomes: Sequence[Outcome], group: Cell) -> dict[str, dict[int, float]]:
    """Client → block → ops/s of its valid trial."""
    rates: dict[str, dict[int, float]] = {}
    for outcome in outcomes:
        cell = outcome.trial.cell
        same = (cell.server, cell.workload, cell.load) == (
            group.server,
            group.workload,
            group.load,
        )
        if not same or outcome.verdict != "VALID" or outcome.measure is None:
            continue
        ok = sum(operation.ok for operation in outcome.measure.operations.values())
        rate = ok / outcome.measure.elapsed_ns * 1e9
        rates.setdefault(cell.client, {})[outcome.trial.block] = rate
    return rates


def holm(p: dict[str, float]) -> dict[str, float]:
    """Holm's step-down correction: with n tests the k-th smallest p is multiplied by n − k + 1.

    Holm, Scandinavian Journal of Statistics 6 (1979).
    """
    corrected: dict[str, float] = {}
    highest = 0.0
    for position, name in enumerate(sorted(p, key=p.__getitem__)):
        highest = max(highest, min(1.0, p[name] * (len(p) - position)))
        corrected[name] = highest
    return corrected


def _answer(ratio: Interval, p: float | None, margin: float) -> Answer:
    if ratio.low is None or ratio.high is None or p is None:
        return "inconclusive"
    if 1 - margin <= ratio.low and ratio.high <= 1 + margin:
        return "equivalent"
    if p < ALPHA and abs(ratio.value - 1) > margin and not ratio.low <= 1 <= ratio.high:
        return "faster" if ratio.value > 1 else "slower"
    return "inconclusive"
