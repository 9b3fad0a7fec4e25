"""Comparison of clients: paired by block, with a margin declared beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from cachemark.analysis.statistics.client_effects import client_effects
from cachemark.analysis.statistics.decision import classify_ratio, holm
from cachemark.analysis.statistics.figures import FIGURES, figures_of, resolution_of, showing
from cachemark.analysis.statistics.interval import Interval, paired_ratio
from cachemark.analysis.statistics.sample_size import pairs_needed
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import REPEAT_SUFFIX

ComparisonAnswer = Literal["faster", "slower", "equivalent", "inconclusive"]
Metric = Literal["rate", "p99"]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A client and a baseline of one group: the ratio of their figures, and the answer.

    The figure is ops/s (`rate`: more is faster) or the p99 of the response time (less is faster).
    `needed` is the number of blocks that would probably settle it (sample_size.py).
    """

    client: str
    baseline: str
    server: str
    workload: str
    load: str
    metric: Metric
    ratio: Interval
    pairs: int
    answer: ComparisonAnswer
    p_holm: float | None
    needed: int | None = None


class _Figures(msgspec.Struct, frozen=True, kw_only=True):
    """A client's figure by block, and the step in which it is measured, relative to it."""

    by_block: dict[int, float]
    resolution: float


def compare(
    outcomes: Sequence[Outcome],
    baseline: str,
    group: Cell,
    margin_percent: float,
    metric: Metric = "rate",
) -> list[Comparison]:
    """Compare every client of a group (server, workload, load of `group`) with the baseline.

    Only blocks in which both have a valid trial are used. `faster` and `slower` need an interval
    that excludes 1, a ratio beyond the margin, and p < 0.05 after Holm's correction.
    `equivalent` needs the whole interval within 1 ± margin.

    The correction is for all pairs of clients in the group. So it also holds for a baseline that
    was chosen because of its figures, such as the fastest client.
    """
    figures = _figures(outcomes, group, metric, repeat=baseline.endswith(REPEAT_SUFFIX))
    pairs = len(figures) * (len(figures) - 1) // 2
    return _against(figures, baseline, group, margin_percent, metric, family=pairs)


def compare_pair(
    outcomes: Sequence[Outcome],
    clients: tuple[str, str],
    group: Cell,
    margin_percent: float,
    metric: Metric = "rate",
) -> Comparison | None:
    """Compare a client with a baseline in a test of its own, such as the second with the first.

    None if they have no block with a valid trial of both.
    """
    figures = _figures(outcomes, group, metric, repeat=True)
    two = {name: figures[name] for name in clients if name in figures}
    comparisons = _against(two, clients[1], group, margin_percent, metric, family=1)
    return comparisons[0] if comparisons else None


def self_comparison(
    outcomes: Sequence[Outcome], group: Cell, margin_percent: float, metric: Metric = "rate"
) -> Comparison | None:
    """The A/A test: a client that was played twice, compared with itself. Any difference is false.

    None if there is no such client, or no block with a valid trial of both arms.
    """
    figures = _figures(outcomes, group, metric, repeat=True)
    again = next((client for client in figures if client.endswith(REPEAT_SUFFIX)), "")
    if not again:
        return None
    pair = again, again.removesuffix(REPEAT_SUFFIX)
    return compare_pair(outcomes, pair, group, margin_percent, metric)


def ranking(outcomes: Sequence[Outcome], group: Cell, metric: Metric = "rate") -> list[str]:
    """The clients of a group that have the figure, fastest first."""
    figures = _figures(outcomes, group, metric, repeat=False)
    effects = client_effects({client: of.by_block for client, of in figures.items()})
    return sorted(effects, key=effects.__getitem__, reverse=metric == "rate")


def _against(
    figures: dict[str, _Figures],
    baseline: str,
    group: Cell,
    margin_percent: float,
    metric: Metric,
    *,
    family: int,
) -> list[Comparison]:
    if baseline not in figures:
        return []
    base, margin = figures[baseline], margin_percent / 100
    ratios: dict[str, tuple[Interval, int]] = {}
    needed: dict[str, int | None] = {}
    for client, own in figures.items():
        blocks = sorted(set(own.by_block) & set(base.by_block))
        if client == baseline or not blocks:
            continue
        first, second = ([of.by_block[block] for block in blocks] for of in (own, base))
        resolution = max(own.resolution, base.resolution)
        ratios[client] = (paired_ratio(first, second, resolution), len(blocks))
        needed[client] = pairs_needed(first, second, margin, family)
    tested = {client: ratio.p for client, (ratio, _) in ratios.items() if ratio.p is not None}
    corrected = holm(tested, family)
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
            answer=_answer(ratio, corrected.get(client), margin, metric),
            p_holm=corrected.get(client),
            needed=needed[client],
        )
        for client, (ratio, pairs) in ratios.items()
    ]


def _figures(
    outcomes: Sequence[Outcome], group: Cell, metric: Metric, *, repeat: bool
) -> dict[str, _Figures]:
    """The figures of each client's valid trials; without clients whose trials lack them.

    `repeat`: with the second arm of the A/A test. It is not a choice, so it must not make a family
    of tests larger.
    """
    trials: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        cell = outcome.trial.cell
        same = (cell.server, cell.workload, cell.load) == (
            group.server,
            group.workload,
            group.load,
        )
        wanted = same and (repeat or not cell.client.endswith(REPEAT_SUFFIX))
        if wanted and outcome.verdict == "VALID" and outcome.measure is not None:
            trials.setdefault(cell.client, []).append(outcome)
    figure = FIGURES[metric]
    by_client: dict[str, _Figures] = {}
    for client, own in trials.items():
        shown = showing(own, figure)
        values = figures_of(shown, figure)
        if values:
            blocks = [trial.trial.block for trial in shown]
            by_client[client] = _Figures(
                by_block=dict(zip(blocks, values, strict=True)),
                resolution=resolution_of(shown, figure),
            )
    return by_client


def _answer(ratio: Interval, p: float | None, margin: float, metric: Metric) -> ComparisonAnswer:
    side = classify_ratio(ratio, p, margin)
    if side == "above":
        return "faster" if metric == "rate" else "slower"
    if side == "below":
        return "slower" if metric == "rate" else "faster"
    return side
