"""Comparison of clients: paired by block, with a margin declared beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from cachemark.analysis.statistics.decision import classify_ratio, holm
from cachemark.analysis.statistics.figures import FIGURES, figures_of
from cachemark.analysis.statistics.interval import Interval, paired_ratio
from cachemark.analysis.statistics.sample_size import pairs_needed
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import REPEAT_SUFFIX

ComparisonAnswer = Literal["faster", "slower", "equivalent", "inconclusive"]
Metric = Literal["rate", "p99"]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A client and a baseline of one group: the ratio of their figures, and the answer.

    The figure is ops/s (`rate`: more is faster) or the p99 of the response time (less is faster).
    `needed` is the number of blocks that would narrow the interval to the margin.
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


def compare(
    outcomes: Sequence[Outcome],
    baseline: str,
    group: Cell,
    margin_percent: float,
    metric: Metric = "rate",
) -> list[Comparison]:
    """Compare every client of a group (server, workload, load of `group`) with the baseline.

    Only blocks in which both have a valid trial are used. `faster` and `slower` need an interval
    that excludes 1, a ratio beyond the margin, and p < 0.05 after Holm's correction over the
    group. `equivalent` needs the whole interval within 1 ± margin.
    """
    figures = _figures(outcomes, group, metric)
    if not baseline.endswith(REPEAT_SUFFIX):
        # The second arm of the A/A test is not a choice, and must not make the family larger.
        figures = {
            client: of for client, of in figures.items() if not client.endswith(REPEAT_SUFFIX)
        }
    return _against(figures, baseline, group, margin_percent, metric)


def self_comparison(
    outcomes: Sequence[Outcome], group: Cell, margin_percent: float, metric: Metric = "rate"
) -> Comparison | None:
    """The A/A test: a client that was played twice, compared with itself. Any difference is false.

    None if there is no such client, or no block with a valid trial of both arms.
    """
    figures = _figures(outcomes, group, metric)
    again = next((client for client in figures if client.endswith(REPEAT_SUFFIX)), "")
    client = again.removesuffix(REPEAT_SUFFIX)
    if not again or client not in figures:
        return None
    two = {name: figures[name] for name in (again, client)}
    found = _against(two, client, group, margin_percent, metric)
    return found[0] if found else None


def _against(
    figures: dict[str, dict[int, float]],
    baseline: str,
    group: Cell,
    margin_percent: float,
    metric: Metric,
) -> list[Comparison]:
    base = figures.get(baseline, {})
    margin = margin_percent / 100
    ratios: dict[str, tuple[Interval, int]] = {}
    needed: dict[str, int | None] = {}
    for client, of_client in figures.items():
        blocks = sorted(set(of_client) & set(base))
        if client == baseline or not blocks:
            continue
        first, second = [of_client[b] for b in blocks], [base[b] for b in blocks]
        ratios[client] = (paired_ratio(first, second), len(blocks))
        needed[client] = pairs_needed(first, second, margin)
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
            answer=_answer(ratio, corrected.get(client), margin, metric),
            p_holm=corrected.get(client),
            needed=needed[client],
        )
        for client, (ratio, pairs) in ratios.items()
    ]


def _figures(
    outcomes: Sequence[Outcome], group: Cell, metric: Metric
) -> dict[str, dict[int, float]]:
    """Client → block → the figure of its valid trial; without clients whose trials lack it."""
    trials: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        cell = outcome.trial.cell
        same = (cell.server, cell.workload, cell.load) == (
            group.server,
            group.workload,
            group.load,
        )
        if same and outcome.verdict == "VALID" and outcome.measure is not None:
            trials.setdefault(cell.client, []).append(outcome)
    found = {client: (own, figures_of(own, FIGURES[metric])) for client, own in trials.items()}
    return {
        client: {trial.trial.block: value for trial, value in zip(own, values, strict=True)}
        for client, (own, values) in found.items()
        if values
    }


def _answer(ratio: Interval, p: float | None, margin: float, metric: Metric) -> ComparisonAnswer:
    found = classify_ratio(ratio, p, margin)
    if found == "above":
        return "faster" if metric == "rate" else "slower"
    if found == "below":
        return "slower" if metric == "rate" else "faster"
    return found
