"""Which of two clients is faster: paired by block, with a margin declared beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from cachemark.outcome import Cell, Outcome
from cachemark.protocol import Done
from cachemark.statistics.figures import rate, response_ns
from cachemark.statistics.interval import Interval, paired_ratio

ALPHA = 0.05
Answer = Literal["faster", "slower", "equivalent", "inconclusive"]
Metric = Literal["rate", "p99"]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A client against a baseline in one group: the ratio of their figures, and what it means.

    The figure is ops/s (`rate`: more is faster) or the p99 of the response time (less is faster).
    """

    client: str
    baseline: str
    server: str
    workload: str
    load: str
    metric: Metric
    ratio: Interval
    pairs: int
    answer: Answer
    p_holm: float | None


def compare(
    outcomes: Sequence[Outcome],
    baseline: str,
    group: Cell,
    margin_percent: float,
    metric: Metric = "rate",
) -> list[Comparison]:
    """Compare every client of a group (server, workload, load of `group`) with the baseline.

    Only blocks in which both have a valid trial count. `faster` and `slower` need an interval
    that excludes 1, a ratio beyond the margin, and p < 0.05 after Holm's correction over the
    group; `equivalent` needs the whole interval inside 1 ± margin.
    """
    figures = _figures(outcomes, group, metric)
    base = figures.get(baseline, {})
    ratios: dict[str, tuple[Interval, int]] = {}
    for client, of_client in figures.items():
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
            metric=metric,
            ratio=ratio,
            pairs=pairs,
            answer=_answer(ratio, corrected.get(client), margin_percent / 100, metric),
            p_holm=corrected.get(client),
        )
        for client, (ratio, pairs) in ratios.items()
    ]


def _figures(
    outcomes: Sequence[Outcome], group: Cell, metric: Metric
) -> dict[str, dict[int, float]]:
    """Client → block → the figure of its valid trial."""
    figures: dict[str, dict[int, float]] = {}
    for outcome in outcomes:
        cell = outcome.trial.cell
        same = (cell.server, cell.workload, cell.load) == (
            group.server,
            group.workload,
            group.load,
        )
        if not same or outcome.verdict != "VALID" or outcome.measure is None:
            continue
        figure = _figure(outcome.measure, metric)
        if figure:
            figures.setdefault(cell.client, {})[outcome.trial.block] = figure
    return figures


def _figure(window: Done, metric: Metric) -> float | None:
    operations = list(window.operations.values())
    if metric == "rate":
        return rate(operations, window.elapsed_ns)
    return response_ns(operations, 99)


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


def _answer(ratio: Interval, p: float | None, margin: float, metric: Metric) -> Answer:
    if ratio.low is None or ratio.high is None or p is None:
        return "inconclusive"
    if 1 - margin <= ratio.low and ratio.high <= 1 + margin:
        return "equivalent"
    if p < ALPHA and abs(ratio.value - 1) > margin and not ratio.low <= 1 <= ratio.high:
        return "faster" if (ratio.value > 1) == (metric == "rate") else "slower"
    return "inconclusive"
