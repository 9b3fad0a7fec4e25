"""Pairs with a known truth: when they are called equal, and after how many sittings settled."""

from __future__ import annotations

from collections.abc import Callable

from claimed_runs import AT_ONCE, Random, cell, looked

from cachemark.analysis.rounds.comparing import answer_questions
from cachemark.analysis.rounds.estimate import LogEstimate, mean_of_logs
from cachemark.analysis.rounds.family import decide
from cachemark.analysis.rounds.looks import needed
from cachemark.analysis.rounds.questions import questions_of


def equal_wrongly(arms: int, deviation: float) -> Callable[[Random], bool]:
    """Whether any pair that differs by the margin is told to be equal.

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


def told_settles(sittings: int, deviation: float) -> Callable[[Random], bool]:
    """Whether a pair is settled after as many sittings as an open one is told to need.

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
