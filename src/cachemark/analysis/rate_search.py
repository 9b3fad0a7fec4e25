"""The search for the highest rate that meets an objective such as `p99<1ms`, by bisection. Pure.

The first step is a closed loop, as an open
loop on the same connections cannot do more. Then each step halves the range between a rate that met
the objective and one that did not. A trial that was disturbed, or whose own client was late, says
nothing about the server: such a rate is tried once more, then the search goes on below it. A rate
that missed the objective once is tried again, too, and two of three plays decide. At the end, the
rate that was too high is played again until three of five plays agree: a wrong answer there is what
makes a search end too low.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from cachemark.analysis.percentiles import min_sample_size
from cachemark.analysis.statistics import (
    CONFIDENCE,
    Interval,
    answered_rate,
    success_share,
    t_quantile,
)
from cachemark.analysis.verdict.noise import noise_delays
from cachemark.analysis.verdict.open_loop import (
    LOAD_MISSED,
    generator_delay,
    generators_were_late,
    with_generated,
)
from cachemark.analysis.verdict.withholding import GENERATOR_LAG, may_have_moved
from cachemark.model import histogram
from cachemark.model.experiment import Experiment, NoisePolicy
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import measuring_load
from cachemark.model.search_steps import MAX_TRIALS, Base, Objective, base_of, parse_objective

# The search ends when its bounds differ by less than this part of the closed loop's rate.
_PRECISION = 0.03
# The best rate has to meet the objective twice, as it may have done so by chance.
_MEETS_NEEDED = 2
# A single miss may be a disturbance that no rule has recognised: two of three plays decide.
_MISSES_NEEDED = 2
# The rate above the best one is too high if it missed as often as this; else it is not.
_CONFIRMED = 3
_SPOILED_PLAYS = 2

Cause = Literal["", "generator", "noise", "invalid", "failed", "unsupported", "few"]


class Play(msgspec.Struct, frozen=True, kw_only=True):
    """One trial at a rate: its successful operations per second, and its answered ones.

    `percentile_ns`: the objective's percentile. `misses_by` says why the server does not meet the
    objective; empty if it does. `spoiled_by` says what makes the trial no answer about the server,
    and `why` gives the reason.
    """

    rate: float
    ops_per_s: float = 0.0
    answered_per_s: float = 0.0
    percentile_ns: int | None = None
    misses_by: str = ""
    spoiled_by: Cause = ""
    why: str = ""

    @property
    def meets(self) -> bool:
        """Whether the server meets the objective, as far as this trial shows."""
        return not self.misses_by and not self.spoiled_by


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """The trials of one search in their order.

    `cell` names the load of the experiment, not that of a step. `after` is the cell of the search
    that its own client limited, so that this one has more threads, `threads` of each process.
    """

    cell: Cell
    block: int
    closed: list[Play] = []
    plays: list[Play] = []
    after: Cell | None = None
    threads: int = 0

    @property
    def most(self) -> float:
        """Answers per second in the closed loop; 0 if it could not be measured.

        Refused writes count: an open loop offers them, too.
        """
        return next((play.answered_per_s for play in self.closed if not play.spoiled_by), 0.0)


def searches(outcomes: Iterable[Outcome], experiment: Experiment) -> list[Search]:
    """All searches of a run, in the order in which they began."""
    objective = parse_objective(experiment.search, "search")
    begun: dict[tuple[int, Cell], Search] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.trial.index):
        base = base_of(experiment, outcome.load)
        if base is not None:
            new = begun_search(outcome.trial.cell, outcome.trial.block, base)
            search = begun.setdefault((new.block, new.cell), new)
            play = judge_play(outcome, objective, experiment.noise)
            (search.plays if play.rate else search.closed).append(play)
    return list(begun.values())


def begun_search(cell: Cell, block: int, base: Base) -> Search:
    """A search without trials, of this client, server and workload."""
    own, written = (msgspec.structs.replace(cell, load=load.name) for load in base)
    if own == written:
        return Search(cell=own, block=block)
    return Search(cell=own, block=block, after=written, threads=base.load.threads)


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a search: the best rate so far, and the least rate that was too high.

    `next_rate` is what it plays next; None: the search has ended.
    """

    best: float
    above: float
    next_rate: float | None


def judge_play(outcome: Outcome, objective: Objective, policy: NoisePolicy) -> Play:
    """The result of one trial of a search."""
    rate = outcome.load.rate or 0.0
    if outcome.state != "measured" or outcome.measure is None:
        cause: Cause = "unsupported" if outcome.state == "unsupported" else "failed"
        return Play(rate=rate, spoiled_by=cause, why=outcome.reason)
    measure = outcome.measure
    # Where generators make the load, the rate is theirs, and the times are the measuring client's.
    offered = outcome.generated or measure
    answered_per_s = answered_rate(outcome, offered)
    played = with_generated(measure, outcome.generated).operations.values()
    failed = sum(operation.attempts - operation.ok for operation in played)
    times = histogram.merge_encoded(each.response for each in measure.operations.values())
    play = Play(
        rate=rate,
        ops_per_s=answered_per_s * success_share(offered),
        answered_per_s=answered_per_s,
        percentile_ns=times.percentile(objective.percent) if times else None,
        misses_by=_misses_by(outcome, failed),
    )
    too_slow = rate > 0 and (play.percentile_ns or 0) >= objective.below_ns
    if too_slow and not play.misses_by:
        play = msgspec.structs.replace(play, misses_by=objective.percentile)
    cause, why = _spoiled_by(outcome, objective, policy)
    if cause == "noise" and not play.misses_by:
        return play  # noise only delays: without it, the server had met the objective all the more
    return msgspec.structs.replace(play, spoiled_by=cause, why=why)


def _misses_by(outcome: Outcome, failed: int) -> str:
    """Why an open loop does not meet any objective; a closed loop has none."""
    if outcome.load.rate is None:
        return ""
    if outcome.verdict in ("OVERLOAD", "NON_STATIONARY"):
        return f"{outcome.verdict}: {'; '.join(outcome.reasons)}"
    return f"{failed} errors" if failed else ""


def _spoiled_by(outcome: Outcome, objective: Objective, policy: NoisePolicy) -> tuple[Cause, str]:
    measure = outcome.measure
    assert measure is not None
    reasons = "; ".join(outcome.reasons)
    own, load = generator_delay(measure), measuring_load(outcome.load)
    noises = noise_delays(outcome.noise, measure, load, policy)
    rules = {found.rule for found in outcome.findings if found.weight == "INVALID"}
    closed = outcome.load.rate is None
    others = rules - {GENERATOR_LAG, *(delay.rule for delay in noises)}
    if outcome.verdict == "INVALID" and (closed or not noises or others):
        return ("generator" if GENERATOR_LAG in rules else "invalid"), reasons
    if closed:
        return "", ""
    missed = any(found.rule == LOAD_MISSED for found in outcome.findings)
    if missed and outcome.generated and generators_were_late(outcome.generated):
        return "generator", reasons
    # A disturbed machine also makes the client late.
    for delay in [*noises, *own]:
        if may_have_moved(measure, objective.percent, delay):
            return ("generator" if delay in own else "noise"), delay.text
    least = min_sample_size(objective.percent)
    count = sum(operation.ok for operation in measure.operations.values())
    if count < least and outcome.verdict == "VALID":
        return "few", f"{count} operations, {objective.percentile} needs {least}"
    return "", ""


def bounds(search: Search, *, final: bool = False) -> Bounds:
    """The state of a search. Without a closed loop it has ended, without a rate.

    With `final` no rate is played again: one that missed as often as it met was too high. So the
    stored searches of versions that did not play it again are read as they ended.
    """
    low, high = 0.0, search.most
    least_step = _PRECISION * search.most
    while high - low > least_step:
        rate = _three_digits((low + high) / 2)
        if not low < rate < high:
            break
        met = _answer(search, rate, final=final)
        if met is None:
            return Bounds(best=low, above=high, next_rate=rate)
        low, high = (rate, high) if met else (low, rate)
    if low > 0 and _votes(search, low).met < _MEETS_NEEDED:
        return Bounds(best=low, above=high, next_rate=low)
    above = _votes(search, high)
    told = len(above.spoiled_by) < _SPOILED_PLAYS
    doubtful = told and _MISSES_NEEDED <= above.missed < _CONFIRMED
    return Bounds(best=low, above=high, next_rate=high if doubtful and not final else None)


def decisive_play(search: Search, rate: float) -> Play | None:
    """The trial that decided about a rate: one that missed the objective, else the last one."""
    tried = [play for play in search.plays if play.rate == rate]
    missed = (play for play in tried if play.misses_by and not play.spoiled_by)
    return next(missed, tried[-1] if tried else None)


def is_limited(search: Search) -> bool:
    """Whether a search has ended at a rate for which its own client was too late."""
    above = decisive_play(search, bounds(search, final=True).above)
    return above is not None and above.spoiled_by == "generator"


def wants_closed(search: Search) -> bool:
    """Whether the closed loop is still to be played."""
    refused = any(play.spoiled_by == "unsupported" for play in search.closed)
    return not search.most and not refused and len(search.closed) < _SPOILED_PLAYS


def has_ended(search: Search) -> bool:
    """Whether a search plays no further step."""
    if wants_closed(search):
        return False
    enough = len(search.plays) + len(search.closed) >= MAX_TRIALS
    return enough or bounds(search).next_rate is None


def _answer(search: Search, rate: float, *, final: bool) -> bool | None:
    """Whether a rate met the objective; None: it is to be played, or once more."""
    votes = _votes(search, rate)
    if votes.met >= _CONFIRMED > votes.missed:
        return True
    spoiled = votes.spoiled_by
    if votes.missed >= _MISSES_NEEDED or len(spoiled) >= _SPOILED_PLAYS or "unsupported" in spoiled:
        return False
    if votes.missed:
        return True if votes.met >= _MEETS_NEEDED else False if final else None
    return True if votes.met else None


class _Votes(NamedTuple):
    met: int
    missed: int
    spoiled_by: list[Cause]


def _votes(search: Search, rate: float) -> _Votes:
    plays = [play for play in search.plays if play.rate == rate]
    return _Votes(
        met=sum(play.meets for play in plays),
        missed=sum(bool(play.misses_by) and not play.spoiled_by for play in plays),
        spoiled_by=[play.spoiled_by for play in plays if play.spoiled_by],
    )


def _three_digits(rate: float) -> float:
    """A rate with three significant digits: it is a part of a name."""
    return round(rate, 2 - math.floor(math.log10(rate))) if rate > 0 else rate


# Widths of the curve (of logarithms), and parts of trials that miss at any rate.
_WIDTHS = (0.02, 0.04, 0.08, 0.16)
_SPOILED = (0.0, 0.05, 0.1, 0.2)
# Middles in steps of about a quarter of a percent, beyond the rates that were played.
_MIDDLES = 1600
_BEYOND = 1.5
_LEAST_PLAYS = 4
_LEAST = 1e-6


def rate_interval(searches: Sequence[Search], rate: float) -> Interval | None:
    """The interval around a rate that searches of one cell found; None if an end is unknown.

    An end is unknown if all plays met the objective, or all missed it. A trial misses with a
    probability that grows with the rate: a logistic curve of its logarithm, with its middle at the
    rate that is sought. A part of the trials misses at any rate, because something disturbed them
    (Wichmann & Hill, Perception & Psychophysics 63, 2001). The interval has all middles whose
    likelihood is near enough to that of the best curve.
    """
    plays = [play for search in searches for play in search.plays if not play.spoiled_by]
    if len(plays) < _LEAST_PLAYS or rate <= 0:
        return None
    logs = np.log([play.rate for play in plays])
    missed = np.array([bool(play.misses_by) for play in plays])
    reach = np.log(_BEYOND)
    middles = np.linspace(logs.min() - reach, logs.max() + reach, _MIDDLES)
    likelihood = _likelihood(logs, missed, middles)
    # As with Student's t, few plays have a wider limit than many. Plays of one search resemble each
    # other more than plays of several, so the searches count.
    degrees = len(searches) if len(searches) > 1 else len(plays) - 2
    fall = t_quantile((1 + CONFIDENCE) / 2, degrees) ** 2 / 2
    likely = middles[likelihood >= likelihood.max() - fall]
    if likely[0] == middles[0] or likely[-1] == middles[-1]:
        return None
    low, high = np.exp(likely[0]), np.exp(likely[-1])
    return Interval(value=rate, low=min(float(low), rate), high=max(float(high), rate))


def _likelihood(logs: np.ndarray, missed: np.ndarray, middles: np.ndarray) -> np.ndarray:
    """ln of the greatest likelihood of each middle, over all widths and parts of spoiled trials."""
    greatest = np.full(len(middles), -np.inf)
    for width in _WIDTHS:
        above = 1 / (1 + np.exp(-np.clip((logs - middles[:, None]) / width, -50, 50)))
        for spoiled in _SPOILED:
            misses = np.clip(spoiled + (1 - spoiled) * above, _LEAST, 1 - _LEAST)
            each = np.where(missed, np.log(misses), np.log(1 - misses))
            greatest = np.maximum(greatest, each.sum(axis=1))
    return greatest
