"""How often the statements of a report hold: nominal beside simulated, for equal and other arms.

    python benchmarks/claims.py                       all claims, some minutes
    python benchmarks/claims.py --runs 2000           the same, finer
    python benchmarks/claims.py --only winner         claims that have this word

Each run has a known truth, and is judged by the functions that judge real runs. A figure of a
sitting is the truth times the noise of an arm; deviations are of logarithms.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from claimed_answers import (
    compared_table,
    equal_wrongly,
    told_settles,
    turns_tell_apart,
    within_holds,
)
from claimed_runs import (
    SITTINGS,
    Pauses,
    Random,
    family,
    is_named,
    lengthened_wrongly,
    marked,
    named,
    own_error,
    percentile,
    search_interval,
    search_too_low,
    settled_wrongly,
    stored,
)
from claimed_tables import left_open, table
from shared_cpu import Shared, length_ms, told

from cachemark.analysis.rounds.looks import LOOKS


class Claim(NamedTuple):
    """A statement about a run, and the part of runs in which it holds.

    It holds in at most `nominal` of them if this is below a half, else in at least as many. `holds`
    plays a run.
    """

    name: str
    nominal: float
    holds: Callable[[Random], bool]

    def agrees(self, found: float, runs: int) -> bool:
        """Whether `runs` runs agree with the claim, but for 3.3 standard errors."""
        slack = 3.3 * math.sqrt(self.nominal * (1 - self.nominal) / runs)
        if self.nominal < 0.5:
            return found <= self.nominal + slack
        return found >= self.nominal - slack


def _three(truths: Sequence[float], noisy: float, margin: float, looks: tuple[int, ...]) -> Claim:
    """A quiet first and second, and a noisy third that is truly first."""
    who = named(truths, (0.01, 0.01, noisy), margin, looks)
    when = "3 looks" if looks else f"{SITTINGS} sittings"
    return Claim(
        f"winner: a wrong arm is named, noisy third {noisy:.0%}, margin {margin:.0%}, {when}",
        0.05,
        is_named(who, "C", wrongly=True),
    )


def _lead(arms: int) -> Claim:
    who = named((1.1, *[1.0] * (arms - 1)), [0.02] * arms, 0.05, ())
    return Claim(
        f"winner: a lead of 10 % over {arms - 1} arms is named", 0.95,
        is_named(who, "A", wrongly=False),
    )  # fmt: skip


def claims() -> list[Claim]:
    """All claims, in the order of the table."""
    return [*_stored(), *_equal(), *_winners(), *_others(), *_slices()]


def _stored() -> list[Claim]:
    found: list[Claim] = []
    for runs in (4, 6):
        for order in ("one side first", "in turns"):
            for walk, day in ((0.02, 0.0), (0.03, 0.0), (0.05, 0.0), (0.0, 0.05)):
                drift = f"day {day:.0%}" if day else f"walk {walk:.0%}"
                name = f"stored runs: equal builds differ, {runs} v {runs} {order}, {drift}"
                found.append(Claim(name, 0.05, stored(order, runs, walk, day)))
    for order in ("in turns", "base first in turns"):
        name = f"stored runs: equal builds differ, 4 v 4 {order}, each run 6% faster"
        found.append(Claim(name, 0.05, stored(order, 4, 0.0, 0.0, 0.06)))
    return found


def _equal() -> list[Claim]:
    two, one = ["one", "other"], ["one"]
    return [
        Claim("family: clients of 2 servers, all equal", 0.05, family(two, 0.05, "clients")),
        Claim("family: servers of 5 clients, all equal", 0.05, family(two, 0.05, "servers")),
        Claim("family: clients of 1 server, all equal", 0.05, family(one, 0.05, "clients")),
        Claim(
            "family: a pair of 8 that differs by the margin is equal", 0.05, equal_wrongly(8, 0.02)
        ),
        Claim("A/A: any of 2 intervals leaves 1 out", 0.05, own_error(2)),
        Claim("A/A: any of 8 intervals leaves 1 out", 0.05, own_error(8)),
        Claim("table: all intervals of 8 equal arms hold", 0.95, table(8)),
        Claim("table: all intervals of 13 equal arms hold", 0.95, table(13)),
        Claim("table: the same of 8, one played twice", 0.95, table(8, twice=True)),
        *[
            Claim(f"table: the same of {arms}, one leads by {lead - 1:.0%}", 0.95, holds)
            for arms, lead, deviation in ((3, 1.06, 0.03), (6, 1.1, 0.04))
            for holds in [table(arms, lead=lead, deviation=deviation)]
        ],
        Claim("table: 6 arms, an answer is beside 1", 0.0, left_open(6, 1.1, 0.04)),
        *[
            Claim(
                f"compare: all shown intervals of 6 equal arms hold, {sittings} sittings"
                f"{', skewed' * skewed}",
                0.95,
                compared_table(6, sittings, skewed=skewed),
            )
            for sittings in (4, 6)
            for skewed in (False, True)
        ],
    ]


def _winners() -> list[Claim]:
    return [
        _three((1.0, 0.94, 1.01), 0.1, 0.05, LOOKS),
        _three((1.0, 0.94, 1.01), 0.2, 0.05, LOOKS),
        _three((1.0, 0.94, 1.01), 0.2, 0.05, ()),
        _three((1.0, 0.97, 1.01), 0.1, 0.02, LOOKS),
        _three((1.0, 0.97, 1.01), 0.2, 0.02, LOOKS),
        _lead(3),
        _lead(6),
    ]


def _looks() -> list[Claim]:
    return [
        *[
            Claim(
                f"looks: settled within {blocks}, equal arms differ",
                0.05,
                settled_wrongly(blocks),
            )
            for blocks in (6, 7, 8, 9, 12)
        ],
        Claim(
            "looks: lengthened by each sitting up to 24",
            0.05,
            lengthened_wrongly([*LOOKS, *range(13, 25)]),
        ),
        Claim("looks: lengthened to 24 and 48", 0.05, lengthened_wrongly([*LOOKS, 24, 48])),
    ]


def _others() -> list[Claim]:
    return [
        Claim("within: interval of 28 rounds, correlation 0", 0.95, within_holds(28, 0.0)),
        Claim("within: interval of 28 rounds, correlation 0.3", 0.95, within_holds(28, 0.3)),
        Claim("within: interval of 10 rounds, correlation 0.3", 0.95, within_holds(10, 0.3)),
        Claim("needed: settled after what 6 sittings tell", 0.8, told_settles(6, 0.034)),
        Claim("needed: settled after what 12 sittings tell", 0.8, told_settles(12, 0.034)),
        *_looks(),
        *[
            Claim(
                f"search: more than 10 % too low, {spoiled:.0%} of the trials spoiled",
                0.05,
                search_too_low(spoiled),
            )
            for spoiled in (0.05, 0.15)
        ],
        *[
            Claim(
                f"search: interval holds, {count} search{'es' if count > 1 else ''}, "
                f"{spoiled:.0%} of the trials spoiled",
                0.95,
                search_interval(count, spoiled),
            )
            for count, spoiled in ((1, 0.0), (1, 0.05), (1, 0.15), (3, 0.05), (5, 0.05))
        ],
        Claim("mark: 8 ordinary sittings", 0.05, marked(8, 0.0)),
        Claim("mark: 1 of 8 sittings at half speed", 0.95, marked(8, math.log(0.5))),
        *_percentiles(),
    ]


def _percentiles() -> list[Claim]:
    near, away = (0.011, 0.009), (0.03, 0.02)
    return [
        Claim(f"percentile: the interval of the ratio holds, {name}", 0.95, percentile(pauses))
        for name, pauses in (
            ("p99.9, pauses in 0.12 and 0.08 %", Pauses(99.9, (0.0012, 0.0008))),
            ("p99, pauses in 1.1 and 0.9 %", Pauses(99.0, near)),
            ("the same, 3 sittings", Pauses(99.0, near, sittings=3)),
            ("the same, 16 sittings", Pauses(99.0, near, sittings=16)),
            ("the same, 400 operations a sitting", Pauses(99.0, near, operations=400)),
            ("p99, pauses in 3 and 2 %", Pauses(99.0, away)),
            ("the same, a machine that varies by 5 %", Pauses(99.0, away, speed=0.05)),
        )
    ]


def _slices() -> list[Claim]:
    """Of many callers who share a CPU; the order in which they get it is drawn."""
    shared = Shared(callers=16, order="random", sizes="constant", mean_ns=1e5)

    def too_high(draw: Random) -> bool:
        return told(shared, length_ms(shared), 2, draw) > 1.01

    return [
        Claim("slices: the rate of 16 callers is more than 1 % too high", 0.05, too_high),
        *[
            Claim(
                f"slices: equal clients differ, one begins {begins}, for {decay_ms} ms",
                0.05,
                turns_tell_apart(decay_ms, part),
            )
            for decay_ms, part, begins in (
                (2, 12.0, "fast"),
                (5, 1.0, "fast"),
                (10, 0.5, "fast"),
                (10, -0.4, "slow"),
            )
        ],
    ]


def share(claim: Claim, runs: int) -> float:
    """The share of `runs` runs in which a claim's function is true, always with the same seed."""
    draw = np.random.default_rng(1)
    return sum(claim.holds(draw) for _ in range(runs)) / runs


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=400, help="runs for each claim (400)")
    parser.add_argument("--only", default="", help="claims that have this word")
    options = parser.parse_args()
    print("| claim | nominal | simulated |\n|---|--:|--:|")
    for claim in claims():
        if options.only in claim.name:
            found = share(claim, options.runs)
            sign = "≤" if claim.nominal < 0.5 else "≥"
            print(f"| {claim.name} | {sign} {claim.nominal:.0%} | {found:.1%} |", flush=True)


if __name__ == "__main__":
    main()
