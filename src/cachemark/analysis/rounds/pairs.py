"""The figures of each arm in each sitting, and the ratio of two arms over sittings.

Arms that played in the same sitting are compared directly: what all arms of a sitting have in
common cancels, also if they are in two sets whose rows take turns. Arms that were never in the same
sitting are compared through the reference arms that both of their sittings have: the variances of
both comparisons with the reference add up.

A client that is played twice is compared with others by both of its arms: its rate in a sitting is
their geometric mean. So its ratios are narrower, and need no more time.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, get_args

import msgspec

from cachemark.analysis.rounds.estimate import (
    LogEstimate,
    difference,
    mean_of_logs,
    of_reach,
    pooled_within,
)
from cachemark.analysis.rounds.looks import MIN_BLOCKS, MIN_SITTINGS
from cachemark.analysis.rounds.sitting import SliceFigure, ratio_of_totals, total_rate
from cachemark.analysis.statistics import (
    FIGURES,
    Figure,
    PooledPercentile,
    Scope,
    TrialTimes,
    counted_slices,
    percentile_reach,
    pooled_percentile,
)
from cachemark.analysis.verdict.void_slices import VOID_SLICES
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import is_repeat, repetition_of
from cachemark.model.rounds import Slices


def _rate(outcome: Outcome) -> float | None:
    """The rate by the totals of the slices, or that of the window."""
    slices = counted_slices(outcome)
    return total_rate(slices) if slices else FIGURES["rate"].of(outcome)


# The figures that arms are compared by, in the order of the report.
ROUND_FIGURES: dict[str, Figure] = {
    "rate": msgspec.structs.replace(FIGURES["rate"], of=_rate),
    **{name: FIGURES[name] for name in ("client-cpu", "server-cpu", "p50", "p99", "p99.9")},
}


# All figures that can be compared, such as the server's memory.
COMPARED_FIGURES: dict[str, Figure] = {**FIGURES, **ROUND_FIGURES}

# A question is decided by one of these: of closed loops the rate, of open ones the response time.
PRIMARY_FIGURES = ("rate", "p99")


def primary_figure(*, closed: bool) -> str:
    """The figure by which a question is decided."""
    return PRIMARY_FIGURES[0 if closed else 1]


class SittingKey(NamedTuple):
    """A sitting: its block, and its number in the run.

    Where the number is not known, `arms` has the labels of its arms, as sets are then apart.
    """

    block: int
    arms: tuple[str, ...] = ()
    number: int | None = None


class ArmFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of an arm in a sitting, or of a cell in a block of trials.

    `arm` is its number in its set, `members` are the labels of its set: a sitting may have several
    sets. `figures` are those that a sitting has by itself; a percentile is made of the `times` of
    several. `lacks` are percentiles that void slices can have moved, `withheld` those that the
    verdict withholds. A trial has no slices. `barriers` followed operations without a reply.
    """

    arm: int = 0
    slices: Slices = Slices()
    figures: Mapping[str, float | None]
    times: TrialTimes | None = None
    lacks: frozenset[float] = frozenset()
    withheld: frozenset[float] = frozenset()
    members: tuple[str, ...] = ()
    barriers: int = 0


Sittings = Mapping[SittingKey, Mapping[Cell, ArmFigures]]
_Met = Sequence[Mapping[Cell, ArmFigures]]


class PairEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """ln(first / second) of a figure of two arms.

    `sittings` is the number of sittings in which both played; through the reference, the smaller
    number of both sides. `scope` is `within` if there are too few sittings for an interval over
    them: the error is then that within the sittings. `why`: the reason if there is no estimate.
    `lost`: only the second has the figure in all of them.
    """

    estimate: LogEstimate | None = None
    sittings: int = 0
    scope: Scope = "over"
    through_reference: bool = False
    lost: bool = False
    why: str = ""


def read_sittings(
    outcomes: Sequence[Outcome], figures: Sequence[str] = tuple(ROUND_FIGURES)
) -> Sittings:
    """The valid outcomes, by sitting in the order of the run; the trials of a block are one."""
    chosen = [COMPARED_FIGURES[name] for name in figures]
    found: dict[SittingKey, dict[Cell, ArmFigures]] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.trial.block):
        if outcome.verdict != "VALID" or outcome.measure is None:
            continue
        trial = outcome.trial
        arm = _arm(outcome, chosen)
        labels = arm.members if trial.sitting is None else ()
        key = SittingKey(trial.block, labels, trial.sitting)
        found.setdefault(key, {})[trial.cell] = arm
    return found


def _arm(outcome: Outcome, figures: Sequence[Figure]) -> ArmFigures:
    window, rounds = outcome.measure, outcome.rounds
    by_time = any(figure.percent is not None for figure in figures)
    whole = [each for each in outcome.withheld if not each.kind]
    moved = frozenset(each.percent for each in whole if each.rule == VOID_SLICES)
    return ArmFigures(
        arm=rounds.arm if rounds else 0,
        slices=counted_slices(outcome) or Slices(),
        figures={of.name: of.of(outcome) for of in figures if of.percent is None},
        times=TrialTimes(list(window.operations.values())) if by_time and window else None,
        barriers=outcome.measure.barriers if outcome.measure else 0,
        lacks=moved,
        withheld=frozenset(each.percent for each in whole) - moved,
        members=tuple(rounds.arms) if rounds else (),
    )


def by_set(sittings: Sittings) -> list[tuple[SittingKey, Mapping[Cell, ArmFigures]]]:
    """The arms of each set of each sitting: a square balances the arms of one set."""
    found: dict[tuple[SittingKey, tuple[str, ...]], dict[Cell, ArmFigures]] = {}
    for key, arms in sittings.items():
        for cell, arm in arms.items():
            found.setdefault((key, arm.members), {})[cell] = arm
    return [(key, arms) for (key, _), arms in found.items()]


def first_sittings(sittings: Sittings, count: int) -> Sittings:
    """The sittings of the first `count` blocks."""
    return {key: arms for key, arms in sittings.items() if key.block < count}


def retired_arms(outcomes: Sequence[Outcome], looks: Sequence[int]) -> frozenset[Cell]:
    """The arms that were played, and left at a look, before the run's last sitting.

    A run that was broken off has arms without its last sitting, too: these have not left.
    """
    played = {outcome.trial.cell for outcome in outcomes if outcome.rounds is not None}
    last: dict[Cell, int] = {}
    for outcome in outcomes:
        # An arm that failed in a sitting has not left it.
        cell = outcome.trial.cell
        last[cell] = max(last.get(cell, 0), outcome.trial.block)
    end = max((last[cell] for cell in played), default=0)
    return frozenset(cell for cell in played if last[cell] < end and last[cell] + 1 in looks)


def estimate_pair(sittings: Sittings, first: Cell, second: Cell, figure: str) -> PairEstimate:
    """The ratio of two arms: direct if they met in enough sittings, else through the reference."""
    met = [arms for arms in sittings.values() if first in arms and second in arms]
    if len(met) < MIN_SITTINGS:
        indirect = _through_reference(sittings, first, second, figure)
        if indirect is not None and (not met or indirect.scope == "over"):
            return indirect
    if not met:
        return PairEstimate(why="the two have no sitting in common, and no reference")
    if not is_repeat(first) and not is_repeat(second):
        met = _of_both(met, (first, second), figure)
    return _direct(met, first, second, figure)


def _of_both(met: _Met, cells: Sequence[Cell], figure: str) -> _Met:
    """Only these cells; a cell that was played twice has the rate of both of its arms."""
    if figure != "rate":
        return met
    again = {cell: repetition_of(cell) for cell in cells}
    return [{cell: _as_both(arms[cell], arms.get(again[cell])) for cell in cells} for arms in met]


def _as_both(arm: ArmFigures, again: ArmFigures | None) -> ArmFigures:
    """The arm; its rate is the geometric mean of both arms' rates if both have one."""
    rates = [of.figures.get("rate") or 0.0 for of in (arm, again) if of]
    if len(rates) < 2 or min(rates) <= 0:
        return arm
    return msgspec.structs.replace(arm, figures={**arm.figures, "rate": math.prod(rates) ** 0.5})


def own_figure(
    sittings: Sittings, cell: Cell, figure: str, *, of_both: bool = False
) -> float | None:
    """ln of an arm's own figure over all of its sittings; None if one of them lacks it.

    `of_both`: with its repetition, as others are compared with it.
    """
    met = [arms for arms in sittings.values() if cell in arms]
    if of_both:
        met = _of_both(met, (cell,), figure)
    estimate = _side(_showing(met, [cell], figure), cell, (), figure)
    return estimate.value if estimate else None


def _direct(met: _Met, first: Cell, second: Cell, figure: str) -> PairEstimate:
    shown = _showing(met, [first, second], figure)
    estimate = _side(shown, first, [second], figure)
    # To use only the sittings that have a figure would bias the result.
    if estimate is None:
        lacks = [_side(shown, cell, (), figure) is None for cell in (first, second)]
        return PairEstimate(why="some sittings lack it", lost=lacks == [True, False])
    count = len(shown)
    if count >= _least(shown, first):
        return PairEstimate(estimate=estimate, sittings=count)
    if COMPARED_FIGURES[figure].percent is None:
        inside = [_within(arms[first], arms[second], figure) for arms in shown]
        logs = _logs(shown, first, [second], figure) or []
        estimate = pooled_within(
            [msgspec.structs.replace(one, value=log) for one, log in zip(inside, logs, strict=True)]
        )
    else:
        estimate = msgspec.structs.replace(estimate, error=None, degrees_of_freedom=0)
    return PairEstimate(estimate=estimate, sittings=count, scope="within")


def _least(met: _Met, cell: Cell) -> int:
    """The least number of sittings, or of blocks of trials, for an interval over them."""
    return MIN_SITTINGS if any(arms[cell].slices.ops for arms in met) else MIN_BLOCKS


def _showing(met: _Met, cells: Collection[Cell], figure: str) -> list[Mapping[Cell, ArmFigures]]:
    """The sittings in which the verdict shows the figure of each of these arms."""
    percent = COMPARED_FIGURES[figure].percent
    return [arms for arms in met if not any(percent in arms[cell].withheld for cell in cells)]


def _side(met: _Met, cell: Cell, others: Collection[Cell], figure: str) -> LogEstimate | None:
    """ln of an arm's figure relative to the geometric mean of others; None if it is not known.

    This is the only place where designs and figures differ: a percentile is that of all sittings
    together, any other figure has a value in each sitting (or trial).
    """
    if not met:
        return None
    percent = COMPARED_FIGURES[figure].percent
    if percent is not None:
        return _of_percentiles(met, cell, others, percent)
    logs = _logs(met, cell, others, figure)
    return mean_of_logs(logs) if logs else None


def _logs(met: _Met, cell: Cell, others: Collection[Cell], figure: str) -> list[float] | None:
    """The values of each sitting; None if one of them lacks the figure, or it is not above 0."""
    logs: list[float] = []
    for arms in met:
        values = [arms[one].figures.get(figure) for one in (cell, *others)]
        positive = [math.log(value) for value in values if value is not None and value > 0]
        if len(positive) < len(values):
            return None
        own, *rest = positive
        logs.append(own - sum(rest) / len(rest) if rest else own)
    return logs


def _of_percentiles(
    met: _Met, cell: Cell, others: Collection[Cell], percent: float
) -> LogEstimate | None:
    """The percentile of all sittings together, with the reach of the parts below it."""
    pooled = [_pooled(met, one, percent) for one in (cell, *others)]
    known = [of for of in pooled if of is not None]
    if len(known) < len(pooled):
        return None
    own, *rest = known
    value = own.value - (sum(of.value for of in rest) / len(rest) if rest else 0.0)
    step = math.sqrt(sum(of.step**2 for of in known) / len(known))
    reach = percentile_reach(own, *rest) if len(met) > 1 else None
    return of_reach(value, reach, len(met), step)


def _pooled(met: _Met, cell: Cell, percent: float) -> PooledPercentile | None:
    if any(percent in arms[cell].lacks for arms in met):
        return None
    times = [times for arms in met if (times := arms[cell].times) is not None]
    return pooled_percentile(tuple(times), percent) if len(times) == len(met) else None


def _within(first: ArmFigures, second: ArmFigures, figure: str) -> LogEstimate:
    """The error within one sitting; a trial has none there."""
    ratio = None
    for name in get_args(SliceFigure):
        if name == figure and first.slices.ops and second.slices.ops:
            ratio = ratio_of_totals(first.slices, second.slices, name)
    # Totals are over all slices of each arm, rounds only over those that both have played.
    return LogEstimate(
        value=0.0,
        error=ratio.error if ratio else None,
        degrees_of_freedom=ratio.degrees_of_freedom if ratio else 0,
        count=1,
    )


def _through_reference(
    sittings: Sittings, first: Cell, second: Cell, figure: str
) -> PairEstimate | None:
    """The ratio of two arms that never met; None if their sittings have no arm in common."""
    ours = [arms for arms in sittings.values() if first in arms and second not in arms]
    theirs = [arms for arms in sittings.values() if second in arms and first not in arms]
    shared = _arms_of(ours) & _arms_of(theirs)
    # A reference arm may have failed in a sitting, which is then of no use here.
    ours, theirs = ([arms for arms in part if shared <= arms.keys()] for part in (ours, theirs))
    if not ours or not theirs or not shared:
        return None
    others = sorted(shared, key=lambda cell: (cell.client, cell.server))
    sides = [
        _side(_showing(part, [cell, *others], figure), cell, others, figure)
        for cell, part in ((first, ours), (second, theirs))
    ]
    if sides[0] is None or sides[1] is None:
        return PairEstimate(why="some sittings lack it", through_reference=True)
    estimate = difference(sides[0], sides[1])
    return PairEstimate(
        estimate=estimate,
        sittings=estimate.count,
        scope="over" if estimate.count >= _least(ours, first) else "within",
        through_reference=True,
    )


def _arms_of(parts: Sequence[Mapping[Cell, ArmFigures]]) -> set[Cell]:
    return {cell for part in parts for cell in part}
