"""Runs with a known truth, judged by the functions that judge real runs; see claims.py.

A figure of a sitting is the truth times the noise of an arm; deviations are of logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from cachemark.analysis.rate_search import Play, Search, bounds, rate_interval
from cachemark.analysis.rounds.comparing import (
    Looked,
    answer_questions,
    compare_chosen,
    holding_together,
    look,
)
from cachemark.analysis.rounds.estimate import mean_of_logs
from cachemark.analysis.rounds.family import decide
from cachemark.analysis.rounds.looks import LOOKS, StopRule
from cachemark.analysis.rounds.pairs import (
    ROUND_FIGURES,
    ArmFigures,
    SittingKey,
    Sittings,
    estimate_pair,
)
from cachemark.analysis.rounds.questions import Question, questions_of
from cachemark.analysis.rounds.ranking import standing
from cachemark.analysis.statistics import TrialTimes
from cachemark.analysis.stored_runs import RunValue, compare_run_values
from cachemark.model import histogram
from cachemark.model.client_name import REPEAT_SUFFIX
from cachemark.model.outcome import Cell
from cachemark.model.protocol import Operation

RATE = ROUND_FIGURES["rate"]
SITTINGS = 8
AT_ONCE = StopRule(margin=0.05, looks=(), planned=SITTINGS)
Random = np.random.Generator
_Played = Callable[[Random], bool]


def cell(client: str, server: str = "one") -> Cell:
    """A cell of the only workload and load."""
    return Cell(client=client, server=server, workload="mixed", load="one")


def sittings_of(logs: dict[Cell, np.ndarray]) -> Sittings:
    """The logarithms of each arm's rates, one for each sitting."""
    count = len(next(iter(logs.values())))
    return {
        SittingKey(block): {
            of: ArmFigures(figures={"rate": math.exp(10 + values[block])})
            for of, values in logs.items()
        }
        for block in range(count)
    }


def looked(
    truths: dict[Cell, float],
    deviations: dict[Cell, float],
    draw: Random,
    rule: StopRule = AT_ONCE,
    sittings: int = SITTINGS,
) -> Looked:
    """A run at its end, of arms whose rates are known; the machine's speed is common to all."""
    speed = draw.normal(0, 0.1, sittings)
    logs = {
        of: math.log(truth) + speed + draw.normal(0, deviations[of], sittings)
        for of, truth in truths.items()
    }
    return look(sittings_of(logs), rule, final=True)


# Stored runs: equal builds, whose machine changes from run to run.


def stored(order: str, runs: int, walk: float, day: float, trend: float = 0.0) -> _Played:
    """Whether equal builds are answered as different, by margin; `order` is of base and head."""

    def wrong(draw: Random) -> bool:
        count = 2 * runs
        heads = {
            "one side first": [number >= runs for number in range(count)],
            "in turns": [number % 4 in (1, 2) for number in range(count)],
            "base first in turns": [number % 2 == 1 for number in range(count)],
        }[order]
        # One day is half of the time.
        days = draw.normal(0, day, 2).repeat(runs)
        logs = np.cumsum(draw.normal(trend, walk, count)) + days + draw.normal(0, 0.02, count)
        values = [
            [
                RunValue(began=f"2026-01-01T{number:02}:00:00+00:00", value=math.exp(logs[number]))
                for number in range(count)
                if heads[number] == head
            ]
            for head in (True, False)
        ]
        found = compare_run_values(*values)
        tested = {0: found.estimate} if found.pairs else {}
        rule = StopRule(margin=0.05, looks=(), unit="pair of runs")
        return any(of.answer in ("better", "worse") for of in decide(tested, rule).values())

    return wrong


# Families: the grid of `quick`, all equal.


def quick_questions(servers: Sequence[str]) -> tuple[list[Cell], list[Question]]:
    """Five clients against some servers, one of them twice."""
    clients = ["a", "b", "c", "d", "e", f"a{REPEAT_SUFFIX}"]
    cells = [cell(client, server) for server in servers for client in clients]
    return cells, questions_of(cells, "a")


def family(servers: Sequence[str], deviation: float, kind: str) -> Callable[[Random], bool]:
    """Whether any pair of a kind of question differs, before the margin."""
    cells, questions = quick_questions(servers)
    asked = [of for of in questions if of.kind == kind]

    def wrong(draw: Random) -> bool:
        run = looked(dict.fromkeys(cells, 1.0), dict.fromkeys(cells, deviation), draw)
        tested = answer_questions(run, asked, "rate")
        return any(of.p_holm is not None and of.p_holm < 0.05 for of in tested.pairs.values())

    return wrong


def own_error(groups: int) -> Callable[[Random], bool]:
    """Whether the A/A interval of any of several groups, corrected, leaves 1 out."""
    cells, questions = quick_questions([f"s{number}" for number in range(groups)])
    twice = [of.twice for of in questions if of.twice is not None]

    def wrong(draw: Random) -> bool:
        run = looked(dict.fromkeys(cells, 1.0), dict.fromkeys(cells, 0.05), draw)
        for pair in twice:
            of = holding_together(run, compare_chosen(run, pair, "rate"), len(twice))
            if (
                of.ratio
                and of.ratio.low
                and of.ratio.high
                and not of.ratio.low <= 1 <= of.ratio.high
            ):
                return True
        return False

    return wrong


# The winner.


def named(
    truths: Sequence[float], deviations: Sequence[float], margin: float, looks: tuple[int, ...]
) -> Callable[[Random], str]:
    """The first at the first look that names one; empty if none does."""
    cells = [cell(chr(ord("A") + number)) for number in range(len(truths))]
    (question,) = questions_of(cells)
    end = looks[-1] if looks else SITTINGS
    rule = StopRule(margin=margin, looks=looks, planned=end)

    def play(draw: Random) -> str:
        run = looked(
            dict(zip(cells, truths, strict=True)),
            dict(zip(cells, deviations, strict=True)),
            draw,
            rule,
            end,
        )
        for at in looks or (end,):
            part = {key: arms for key, arms in run.sittings.items() if key.block < at}
            found = standing(look(part, rule, final=at == end), question, RATE)
            if found.lead is not None and found.lead.answer == "better":
                return found.lead.first.client
        return ""

    return play


def is_named(
    who: Callable[[Random], str], right: str, *, wrongly: bool
) -> Callable[[Random], bool]:
    """Whether another arm than the right one is named, or the right one."""
    return lambda draw: (name := who(draw)) != "" and (name != right) == wrongly


# Looks, single sittings and percentiles.


def settled_wrongly(blocks: int) -> Callable[[Random], bool]:
    """Whether equal arms differ at a look of a run that ends when it is settled."""
    looks = tuple(at for at in LOOKS if at <= blocks)
    rule = StopRule(margin=0.0, looks=looks, planned=blocks)

    def wrong(draw: Random) -> bool:
        logs = draw.normal(0, 0.05, blocks)
        ends = sorted({*looks, blocks})
        return any(
            (ratio := mean_of_logs(logs[:at].tolist()).ratio(rule.confidence)).p is not None
            and ratio.p < rule.level
            for at in ends
        )

    return wrong


def lengthened_wrongly(ends: Sequence[int]) -> Callable[[Random], bool]:
    """Whether equal arms differ at a look of a run that is lengthened to each of `ends`."""
    rules = {at: StopRule(margin=0.0, looks=LOOKS, planned=max(at, LOOKS[-1])) for at in ends}

    def wrong(draw: Random) -> bool:
        logs = draw.normal(0, 0.05, max(ends)).tolist()
        found = [
            (rule, mean_of_logs(logs[:at]).ratio(rule.confidence).p) for at, rule in rules.items()
        ]
        return any(p is not None and p < rule.level for rule, p in found)

    return wrong


def marked(sittings: int, rare: float) -> Callable[[Random], bool]:
    """Whether a sitting is marked; the first one is slower by `rare`, on logarithms."""

    def is_marked(draw: Random) -> bool:
        logs = draw.normal(0, 0.03, sittings)
        logs[0] += rare
        return mean_of_logs(logs.tolist()).one_tells_most

    return is_marked


class Pauses(NamedTuple):
    """Two clients whose percentile is compared; the parts of their operations that meet a pause.

    `speed` is the deviation of the machine's speed, which both meet, from sitting to sitting.
    """

    percent: float
    shares: tuple[float, float]
    sittings: int = SITTINGS
    operations: int = 20_000
    speed: float = 0.0


def percentile(pauses: Pauses) -> Callable[[Random], bool]:
    """Whether the interval of the ratio of two percentiles holds."""
    arms = (cell("often"), cell("seldom"))
    figure = f"p{pauses.percent:g}"
    one, other = (_quantile(share, pauses.percent) for share in pauses.shares)

    def holds(draw: Random) -> bool:
        sittings: dict[SittingKey, dict[Cell, ArmFigures]] = {}
        for block in range(pauses.sittings):
            speed = math.exp(draw.normal(0, pauses.speed))
            sittings[SittingKey(block)] = {
                arm: ArmFigures(figures={}, times=_times(draw, share, pauses.operations, speed))
                for arm, share in zip(arms, pauses.shares, strict=True)
            }
        estimate = estimate_pair(sittings, *arms, figure).estimate
        ratio = estimate.ratio(0.95) if estimate else None
        if ratio is None or ratio.low is None or ratio.high is None:
            return False
        return ratio.low * 0.998 <= one / other <= ratio.high * 1.002

    return holds


_FAST_US, _PAUSE_US = 100.0, 2500.0
_STEPS = 101
# The times that occur: around fast operations and pauses, within 5 %.
_NS = [
    1000 * around * (0.95 + 0.1 * at / (_STEPS - 1))
    for around in (_FAST_US, _PAUSE_US)
    for at in range(_STEPS)
]


def _quantile(share: float, percent: float) -> float:
    """The true percentile: uniform within 5 %, around a fast operation or a pause."""
    above = 1 - percent / 100
    low, at = (
        (_PAUSE_US, 1 - above / share) if above < share else (_FAST_US, (1 - above) / (1 - share))
    )
    return low * (0.95 + 0.1 * at)


def _times(draw: Random, share: float, operations: int, speed: float) -> TrialTimes:
    # Pauses of a sitting come in bursts: their number varies more than by chance.
    expected = share * operations * draw.gamma(20, 1 / 20)
    pauses = min(operations, int(draw.poisson(expected)))
    buckets = [histogram.bucket_index(round(ns / speed)) for ns in _NS]
    counts = np.zeros(1 + max(buckets), dtype=np.int64)
    np.add.at(counts, buckets, _spread(draw, operations - pauses, pauses))
    times = histogram.encode(histogram.Histogram(counts))
    return TrialTimes([Operation(attempts=operations, ok=operations, response=times)])


def _spread(draw: Random, fast: int, pauses: int) -> np.ndarray:
    """How many operations took each of the times of `_NS`."""
    alike = np.full(_STEPS, 1 / _STEPS)
    return np.concatenate([draw.multinomial(fast, alike), draw.multinomial(pauses, alike)])


def search_interval(searches: int, spoiled: float) -> Callable[[Random], bool]:
    """Whether the interval of a found rate has the true one.

    A trial varies by 3 % in the rate that it can do, and searches by 3 % from each other.
    """

    def holds(draw: Random) -> bool:
        truth = draw.uniform(0.1, 1.0) * 1e5
        found = [
            _search(draw, truth * math.exp(draw.normal(0, 0.03 * (searches > 1))), spoiled, 0.03)
            for _ in range(searches)
        ]
        best = float(np.median([bounds(of).best for of in found]))
        known = rate_interval(found, best)
        return not known or not known.low or not known.high or known.low <= truth <= known.high

    return holds


def search_too_low(spoiled: float) -> Callable[[Random], bool]:
    """Whether a search ends more than 10 % below the true rate; some trials miss by chance."""

    def too_low(draw: Random) -> bool:
        truth = draw.uniform(0.1, 1.0) * 1e5
        return bounds(_search(draw, truth, spoiled, 0.0)).best < 0.9 * truth

    return too_low


def _search(draw: Random, truth: float, spoiled: float, deviation: float) -> Search:
    """A whole search: a trial misses above what it can do, which varies, and some by chance."""
    search = Search(cell=cell("a"), block=0, closed=[Play(rate=0, answered_per_s=1.1e5)])
    while (rate := bounds(search).next_rate) is not None:
        can_do = truth * math.exp(draw.normal(0, deviation))
        missed = rate > can_do or draw.random() < spoiled
        play = Play(rate=rate, misses_by="p99" if missed else "")
        search = msgspec.structs.replace(search, plays=[*search.plays, play])
    return search
