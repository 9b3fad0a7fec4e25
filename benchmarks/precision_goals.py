"""Whether a run of rounds was as precise as it should be, or how long that takes here. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from cachemark.analysis.rounds.answers import Answers, Ranking
from cachemark.analysis.statistics import Comparison, Interval

# Half widths of intervals, as factors minus 1.
SAME_CLIENT_QUIET, SAME_CLIENT_LOADED, CPU = 0.03, 0.08, 0.02
# Two clients that differ by this factor must have an answer.
DIFFERENCE = 1.1
# How many times narrower rounds are than trials of the same length.
NARROWER = 5.0


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """A goal: what was measured, and the minutes that meet it here.

    `minutes` is that of the run itself if the goal is met; None if unknown.
    """

    name: str
    measured: str
    met: bool
    minutes: float | None = None

    def line(self) -> str:
        """The goal as a row of a table."""
        if self.met:
            return f"{self.name:<52}{self.measured:<34}met"
        takes = "needs a quieter machine" if self.minutes is None else _minutes(self.minutes)
        return f"{self.name:<52}{self.measured:<34}not met: {takes}"


def _minutes(minutes: float) -> str:
    return f"takes {math.ceil(minutes)} minutes here" if math.isfinite(minutes) else "no interval"


def half_width(of: Interval | None) -> float | None:
    """Half of an interval as a factor minus 1; None without an interval."""
    if of is None or of.low is None or of.high is None or of.low <= 0:
        return None
    return math.sqrt(of.high / of.low) - 1


def goals_of(found: Answers, took_s: float, *, loaded: bool) -> list[Goal]:
    """The goals of a run that took so long, over all servers that it compared clients on."""
    clients = [group for group in found.groups if group.question.kind == "clients"]
    rates = [of for group in clients if (of := group.ranking("rate"))]
    cpu = [of for group in clients if (of := group.ranking("client-cpu"))]
    sitting_s = took_s / max(1, found.sittings)
    same = SAME_CLIENT_LOADED if loaded else SAME_CLIENT_QUIET
    return [
        _width_goal("a client against itself, rate", [of.twice for of in rates], same, took_s),
        _width_goal("CPU per operation, every pair", _pairs(cpu), CPU, took_s),
        _told_goal(_pairs(rates), sitting_s),
    ]


def _pairs(rankings: Sequence[Ranking]) -> list[Comparison]:
    return [pair for ranking in rankings for pair in ranking.pairs]


def _width_goal(
    name: str, comparisons: Sequence[Comparison | None], goal: float, took_s: float
) -> Goal:
    """The widest interval; widths shrink with the root of the time."""
    halves = [half_width(of.ratio) if of else None for of in comparisons]
    known = [half for half in halves if half is not None]
    name = f"{name}: within ±{100 * goal:g} %"
    if not known or len(known) < len(halves):
        return Goal(name=name, measured="no interval", met=False)
    widest = max(known)
    minutes = took_s / 60 * (widest / goal) ** 2
    narrow = sum(half <= goal for half in known)
    measured = f"widest ±{100 * widest:.1f} %, {narrow} of {len(known)} within"
    return Goal(name=name, measured=measured, met=widest <= goal, minutes=minutes)


def _told_goal(pairs: Sequence[Comparison], sitting_s: float) -> Goal:
    """Whether all pairs whose rates differ by a tenth have an answer."""
    apart = [
        of for of in pairs if of.ratio and abs(math.log(of.ratio.value)) >= math.log(DIFFERENCE)
    ]
    still_open = [of for of in apart if of.answer not in ("better", "worse")]
    needed = [of.needed for of in still_open]
    known = [sittings for sittings in needed if sittings is not None]
    return Goal(
        name=f"pairs whose rates differ by {100 * DIFFERENCE - 100:.0f} % or more have an answer",
        measured=f"{len(apart) - len(still_open)} of {len(apart)}",
        met=not still_open,
        minutes=max(known) * sitting_s / 60 if known and len(known) == len(needed) else None,
    )


def narrower_goal(
    rounds: tuple[Interval | None, float], trials: tuple[Interval | None, float]
) -> Goal:
    """Rounds against trials: an interval of each, and the seconds that it took.

    Both are brought to the same time, as widths shrink with its root.
    """
    name = f"at least {NARROWER:g} times narrower than trials"
    one, two = half_width(rounds[0]), half_width(trials[0])
    if not one or not two:
        return Goal(name=name, measured="no interval", met=False)
    times = two / one * math.sqrt(trials[1] / rounds[1])
    return Goal(name=name, measured=f"{times:.1f} times", met=times >= NARROWER)
