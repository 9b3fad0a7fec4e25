"""Pairs with a known truth: when they are called equal, and after how many sittings settled."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from claimed_runs import AT_ONCE, SITTINGS, Random, cell, looked, sittings_of

from cachemark.analysis.rounds.comparing import (
    answer_questions,
    compare_pairs,
    decide_pairs,
    look,
    with_family_interval,
)
from cachemark.analysis.rounds.estimate import LogEstimate, mean_of_logs
from cachemark.analysis.rounds.family import decide
from cachemark.analysis.rounds.looks import StopRule, needed
from cachemark.analysis.rounds.pairs import ArmFigures, SittingKey
from cachemark.analysis.rounds.questions import questions_of
from cachemark.analysis.rounds.sitting import ratio_of_totals, total_rate
from cachemark.model.rounds import Slices


def equal_wrongly(arms: int, deviation: float) -> Callable[[Random], bool]:
    """Whether any pair that differs by the margin has the answer *equal*.

    Half of the arms are as much faster than the others as the margin says, or hardly more.
    """
    cells = [cell(f"c{number}") for number in range(arms)]
    fast = set(cells[: arms // 2])
    questions = questions_of(cells, "c0")
    truths = {of: (1.0501 if of in fast else 1.0) for of in cells}

    def wrong(draw: Random) -> bool:
        run = looked(truths, dict.fromkeys(cells, deviation), draw)
        tested = answer_questions(run, questions, "rate")
        return any(
            of.answer == "equal" and (one in fast) != (other in fast)
            for (one, other), of in tested.pairs.items()
        )

    return wrong


def compared_table(arms: int, sittings: int, *, skewed: bool) -> Callable[[Random], bool]:
    """Whether all intervals of `compare` hold, of equal arms with the first as their baseline.

    Where a corrected interval is beside a ratio, it counts. `skewed`: an arm is slower than at its
    best by an exponential part.
    """
    first, *others = cells = [cell(f"c{number}") for number in range(arms)]
    pairs = dict.fromkeys([(other, first) for other in others], 1.0)
    rule = StopRule(margin=0.05, looks=(), planned=sittings)

    def holds(draw: Random) -> bool:
        noise = (
            (lambda: -draw.exponential(0.05, sittings))
            if skewed
            else (lambda: draw.normal(0, 0.05, sittings))
        )
        run = look(sittings_of({of: noise() for of in cells}), rule, final=True)
        compared = compare_pairs(run, decide_pairs(run, pairs, "rate"), "rate", len(pairs))
        rows = [with_family_interval(run, of, len(pairs)) for of in compared.values()]
        shown = [of.together or of.ratio for of in rows]
        return all(of and of.low and of.high and of.low <= 1 <= of.high for of in shown)

    return holds


def within_holds(rounds: int, correlation: float) -> Callable[[Random], bool]:
    """Whether the interval within a sitting holds, if each round is like the one before it."""

    def holds(draw: Random) -> bool:
        first, second = (_slices(draw, rounds, correlation) for _ in range(2))
        estimate = ratio_of_totals(first, second)
        ratio = estimate.ratio(0.95) if estimate else None
        return bool(ratio and ratio.low and ratio.high and ratio.low <= 1 <= ratio.high)

    return holds


def _slices(draw: Random, rounds: int, correlation: float) -> Slices:
    """About 1,000 operations in each slice; the deviation of a slice is 16 %."""
    logs = draw.normal(0, 0.16, rounds)
    for number in range(1, rounds):
        fresh = math.sqrt(1 - correlation**2)
        logs[number] = correlation * logs[number - 1] + fresh * logs[number]
    return Slices(
        square=[0] * rounds,
        row=list(range(rounds)),
        ops=[round(1000 * math.exp(log)) for log in logs],
        elapsed_ns=[30_000_000] * rounds,
    )


def told_settles(sittings: int, deviation: float) -> Callable[[Random], bool]:
    """Whether a pair is settled after the number of sittings that an open one needs by its answer.

    The truth is anywhere within 12 % of 1.
    """

    def settles(draw: Random) -> bool:
        while True:
            truth = draw.uniform(-0.12, 0.12)
            logs = draw.normal(truth, deviation, sittings).tolist()
            pilot = mean_of_logs(logs)
            enough = needed(pilot, AT_ONCE)
            if enough is not None and _is_open(pilot):
                more = draw.normal(truth, deviation, enough - sittings).tolist()
                return not _is_open(mean_of_logs([*logs, *more]))

    return settles


def _is_open(estimate: LogEstimate) -> bool:
    return decide({0: estimate}, AT_ONCE)[0].answer == "open"


def turns_tell_apart(decay_ms: float, part: float, slices: int = 28) -> Callable[[Random], bool]:
    """Whether two equal clients are told apart because one begins its turns slower, or faster.

    The difference is `part` of the rate when a turn begins, and falls by a factor of e in
    `decay_ms`. Rates vary by 2 % from sitting to sitting, and by 16 % from slice to slice,
    and by 10 % more in each half.
    """
    slow, even = cell("changes"), cell("even")
    questions = questions_of([slow, even], "even")

    def wrong(draw: Random) -> bool:
        sittings = {
            SittingKey(block): {
                of: _arm(draw, slices, decay_ms, part if of == slow else 0.0) for of in (slow, even)
            }
            for block in range(SITTINGS)
        }
        tested = answer_questions(look(sittings, AT_ONCE, final=True), questions, "rate")
        return any(of.answer in ("better", "worse") for of in tested.pairs.values())

    return wrong


_LEAD_IN_MS, _MIDDLE_MS, _END_MS = 4.5, 17.25, 30.0


def _arm(draw: Random, slices: int, decay_ms: float, part: float) -> ArmFigures:
    rates = 20 * np.exp(draw.normal(0, 0.02) + draw.normal(0, 0.16, slices))
    halves = [
        np.rint(
            rates
            * np.exp(draw.normal(0, 0.1, slices))
            * (end - begin + part * decay_ms * _between(begin, end, decay_ms))
        )
        for begin, end in ((_LEAD_IN_MS, _MIDDLE_MS), (_MIDDLE_MS, _END_MS))
    ]
    counted_ns = round(1e6 * (_END_MS - _LEAD_IN_MS))
    played = Slices(
        ops=(halves[0] + halves[1]).astype(int).tolist(),
        errors=[0] * slices,
        elapsed_ns=[counted_ns] * slices,
        half_ops=halves[0].astype(int).tolist(),
        half_ns=[counted_ns // 2] * slices,
    )
    return ArmFigures(figures={"rate": total_rate(played)}, slices=played)


def _between(begin_ms: float, end_ms: float, decay_ms: float) -> float:
    return math.exp(-begin_ms / decay_ms) - math.exp(-end_ms / decay_ms)
