"""The figures of each arm in each sitting, and the ratio of two arms over sittings.

Arms that played in the same sitting are compared directly: what all arms of a sitting have in
common cancels, also if they are in two sets whose rows take turns. Arms that were never in the same
sitting are compared through the reference arms that both of their sittings have: the variances of
both comparisons with the reference add up.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import msgspec

from cachemark.analysis.rounds.estimate import (
    LogEstimate,
    difference,
    mean_of_logs,
    pooled_within,
)
from cachemark.analysis.rounds.looks import MIN_SITTINGS
from cachemark.analysis.rounds.sitting import (
    SliceFigure,
    arm_totals,
    ratio_of_totals,
)
from cachemark.analysis.statistics import FIGURES, Figure, succeeded_slices
from cachemark.analysis.verdict.void_slices import VOID_SLICES
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.rounds import Slices

# What an estimate is based on: several sittings, or only what happened within a few.
Scope = Literal["sittings", "within"]


def _rate(outcome: Outcome) -> float | None:
    """The rate by the totals of the slices."""
    slices = succeeded_slices(outcome)
    return arm_totals(slices).rate if slices else None


# The figures that arms are compared by, in the order of the report.
ROUND_FIGURES: dict[str, Figure] = {
    "rate": msgspec.structs.replace(FIGURES["rate"], of=_rate),
    **{name: FIGURES[name] for name in ("client-cpu", "server-cpu", "p50", "p99", "p99.9")},
}


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
    """What an arm did in a sitting: its number in its set, its slices, and its figures by name.

    `members` are the labels of its set: a sitting may have several sets.
    """

    arm: int
    slices: Slices
    figures: Mapping[str, float | None]
    members: tuple[str, ...] = ()


Sittings = Mapping[SittingKey, Mapping[Cell, ArmFigures]]


class PairEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """ln(first / second) of a figure of two arms.

    `sittings` is the number of sittings in which both played; through the reference, the smaller
    number of both sides. `scope` is `within` if there are too few sittings for an interval over
    them: the error is then that within the sittings. `why`: the reason if there is no estimate.
    """

    estimate: LogEstimate | None = None
    sittings: int = 0
    scope: Scope = "sittings"
    through_reference: bool = False
    why: str = ""


def read_sittings(
    outcomes: Sequence[Outcome], figures: Sequence[str] = tuple(ROUND_FIGURES)
) -> Sittings:
    """The valid outcomes of arms, by sitting in the order of the run."""
    found: dict[SittingKey, dict[Cell, ArmFigures]] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.trial.block):
        slices = succeeded_slices(outcome)
        if outcome.verdict != "VALID" or outcome.rounds is None or slices is None:
            continue
        values = {name: _figure(outcome, ROUND_FIGURES[name]) for name in figures}
        members = tuple(outcome.rounds.arms)
        arm = ArmFigures(
            arm=outcome.rounds.arm,
            slices=slices,
            figures=values,
            members=members,
        )
        trial = outcome.trial
        labels = members if trial.sitting is None else ()
        key = SittingKey(trial.block, labels, trial.sitting)
        found.setdefault(key, {})[trial.cell] = arm
    return found


def _figure(outcome: Outcome, figure: Figure) -> float | None:
    """A figure of an arm; None if it has none, or the times of void slices can have moved it."""
    moved = {each.percent for each in outcome.withheld if each.rule == VOID_SLICES}
    return None if figure.percent in moved else figure.of(outcome)


def by_set(sittings: Sittings) -> list[tuple[SittingKey, Mapping[Cell, ArmFigures]]]:
    """The arms of each set of each sitting: a square balances those of one set."""
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
        # A sitting in which the arm failed is none that it had left.
        cell = outcome.trial.cell
        last[cell] = max(last.get(cell, 0), outcome.trial.block)
    end = max((last[cell] for cell in played), default=0)
    return frozenset(cell for cell in played if last[cell] < end and last[cell] + 1 in looks)


def estimate_pair(sittings: Sittings, first: Cell, second: Cell, figure: str) -> PairEstimate:
    """The ratio of two arms: direct if they met in enough sittings, else through the reference."""
    met = [arms for arms in sittings.values() if first in arms and second in arms]
    if len(met) < MIN_SITTINGS:
        indirect = _through_reference(sittings, first, second, figure)
        if indirect is not None and (not met or indirect.scope == "sittings"):
            return indirect
    if not met:
        return PairEstimate(why="the two have no sitting in common, and no reference")
    return _direct(met, first, second, figure)


def _direct(
    met: Sequence[Mapping[Cell, ArmFigures]], first: Cell, second: Cell, figure: str
) -> PairEstimate:
    """The ratio of two arms that played in the same sittings."""
    logs = [_log_ratio(arms[first], arms[second], figure) for arms in met]
    known = [log for log in logs if log is not None]
    # To use only the sittings that have a figure would bias the result.
    if len(known) < len(logs):
        return PairEstimate(why="some sittings lack it")
    if len(known) >= MIN_SITTINGS:
        return PairEstimate(estimate=mean_of_logs(known), sittings=len(known))
    within = pooled_within(
        [
            _within(arms[first], arms[second], figure, log)
            for arms, log in zip(met, known, strict=True)
        ]
    )
    return PairEstimate(estimate=within, sittings=len(known), scope="within")


def _log_ratio(first: ArmFigures, second: ArmFigures, figure: str) -> float | None:
    one, two = first.figures.get(figure), second.figures.get(figure)
    return math.log(one / two) if one and two else None


def _within(first: ArmFigures, second: ArmFigures, figure: str, log: float) -> LogEstimate:
    """The ratio within one sitting; a percentile has no error there."""
    ratio = None
    for name in get_args(SliceFigure):
        if name == figure:
            ratio = ratio_of_totals(first.slices, second.slices, name)
    # Totals are over all slices of each arm, rounds only over those that both have played.
    return LogEstimate(
        value=log,
        error=ratio.error if ratio else None,
        degrees_of_freedom=ratio.degrees_of_freedom if ratio else 0,
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
    sides = [
        [_against(arms, cell, shared, figure) for arms in part]
        for cell, part in ((first, ours), (second, theirs))
    ]
    known = [[log for log in side if log is not None] for side in sides]
    count = min(map(len, known))
    if known != sides:
        return PairEstimate(why="some sittings lack it", through_reference=True)
    return PairEstimate(
        estimate=difference(mean_of_logs(known[0]), mean_of_logs(known[1])),
        sittings=count,
        scope="sittings" if count >= MIN_SITTINGS else "within",
        through_reference=True,
    )


def _arms_of(parts: Sequence[Mapping[Cell, ArmFigures]]) -> set[Cell]:
    """All arms that played in any of these sittings."""
    return {cell for part in parts for cell in part}


def _against(
    arms: Mapping[Cell, ArmFigures], cell: Cell, reference: Collection[Cell], figure: str
) -> float | None:
    """ln of an arm's figure relative to the geometric mean of the reference arms."""
    logs = [_log_ratio(arms[cell], arms[other], figure) for other in reference]
    known = [log for log in logs if log is not None]
    return sum(known) / len(known) if len(known) == len(logs) else None
