"""What interleaved rounds answer in simulated experiments whose truth is known.

    python benchmarks/rounds_simulation.py                      the full table, some minutes
    python benchmarks/rounds_simulation.py --experiments 200    the same, coarser

Every experiment is made in virtual time and judged by the functions that judge real runs. For each
kind of machine, the table has

- how often the same client, played twice, differs from itself at any look (p, before the margin),
- how often a family of equal clients has any false difference, with the test of the winner,
- how often the intervals of all looks contain the truth, for a pair of clients.

A second table has the power: how often a true difference is found, and after how many sittings.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cachemark.analysis.rounds.contrast import Looked, decide_family, look
from cachemark.analysis.rounds.family import Pair, all_pairs, decide_lead, may_retire
from cachemark.analysis.rounds.looks import LOOKS, StopRule
from cachemark.analysis.rounds.order import random_square, turns
from cachemark.analysis.rounds.pairs import (
    ROUND_FIGURES,
    ArmFigures,
    SittingKey,
    Sittings,
    estimate_pair,
)
from cachemark.analysis.rounds.ranking import rank
from cachemark.analysis.rounds.sitting import arm_totals
from cachemark.model.outcome import Cell
from cachemark.model.rounds import Slices

SLICE_MS, TURN_MS, SETUP_MS = 30, 2, 4000
ARMS = 4
RATE = 20_000.0
# The columns of slices that are 0 here.
UNUSED = ("errors", "lead_in_ops", "worker_cpu_ns", "server_cpu_ns", "idle_cpu_ns", "steal_ns")
Values = NDArray[np.float64]


class Machine(NamedTuple):
    """What disturbs an experiment. Deviations are of logarithms.

    `sitting` is the deviation of an arm's level from sitting to sitting, `slice` that of single
    slices. `drift` is the machine's change over the run. A burst of other load takes 40 % of the
    speed, a slow phase of a client half of its own; `slow` are the arms that have such phases.
    `carried`: what arm 2 takes from the speed of its successor. A sitting of 6 squares takes 4 s.
    """

    name: str
    sitting: float = 0.015
    slice: float = 0.05
    drift: float = 0.0
    bursts: bool = False
    ar1: float = 0.0
    heavy: bool = False
    slow: frozenset[int] = frozenset()
    carried: float = 0.0
    squares: int = 6


EVERY = frozenset(range(ARMS))
ONE_CLIENT = frozenset({0, 1})
ALL_OF_IT = Machine(
    "all of it", drift=-0.5, bursts=True, ar1=0.8, heavy=True, slow=ONE_CLIENT
)  # fmt: skip
MACHINES = (
    Machine("quiet"),
    Machine("drift of 40 % over the run", drift=-0.5),
    Machine("bursts of other load", bursts=True),
    Machine("AR(1) noise, 0.8", ar1=0.8),
    Machine("slow phases of one client", slow=ONE_CLIENT),
    Machine("the same, sittings of 8 s", slow=ONE_CLIENT, squares=12),
    Machine("slow phases of every client", slow=EVERY),
    Machine("heavy tails", heavy=True),
    Machine("one arm slows its successor by 10 %", carried=0.1),
    ALL_OF_IT,
    ALL_OF_IT._replace(name="the same, sittings of 8 s", squares=12),
)


class Experiment:
    """One experiment, played sitting by sitting."""

    def __init__(self, machine: Machine, rates: Sequence[float], seed: int) -> None:
        self.machine = machine
        self.log_rates = np.log(np.asarray(rates))
        self.draw = np.random.default_rng(seed)
        self.order = random.Random(seed)
        self.cells = [
            Cell(client=f"client {arm}", server="s", workload="w", load="l")
            for arm in range(len(rates))
        ]
        self.sittings: dict[SittingKey, dict[Cell, ArmFigures]] = {}

    def play(self, arms: Sequence[int]) -> None:
        """Play the next sitting with these arms."""
        block = len(self.sittings)
        played = [
            turn
            for square in range(self.machine.squares)
            for turn in turns(square, random_square(self.order, arms))
        ]
        who = np.array([turn.arm for turn in played])
        before = np.concatenate([who[:1], who[:-1]])
        logs = self._log_speed(block, who, before)
        ops = self.draw.poisson(RATE * np.exp(logs) * SLICE_MS / 1000)
        counted = np.array([turn.counted for turn in played])
        places = np.array([(turn.square, turn.row, turn.position) for turn in played])
        key = SittingKey(block, tuple(self.cells[arm].client for arm in arms))
        self.sittings[key] = {
            self.cells[arm]: _arm(
                arm, *(of[counted & (who == arm)] for of in (places, before, ops))
            )
            for arm in arms
        }

    def _log_speed(self, block: int, who: NDArray[np.int64], before: NDArray[np.int64]) -> Values:
        """ln of the speed of each slice, relative to RATE."""
        machine, draw, count = self.machine, self.draw, len(who)
        within_ms = np.arange(count, dtype=float) * (SLICE_MS + TURN_MS)
        sitting_ms = SETUP_MS + count * (SLICE_MS + TURN_MS)
        levels = machine.sitting * self._noise(len(self.log_rates))
        logs = self.log_rates[who] + levels[who] + machine.slice * self._noise(count)
        logs += machine.drift * (block + within_ms / sitting_ms) / LOOKS[-1]
        if machine.ar1:
            logs += _ar1(machine.ar1, 0.1, count, draw)
        if machine.bursts:
            logs += np.log(0.6) * _phases(within_ms, 1500, 300, draw)
        for arm in machine.slow:
            logs += np.log(0.5) * (who == arm) * _phases(within_ms, 2000, 350, draw)
        return logs + np.log1p(-machine.carried) * ((before == 2) & (who != 2))

    def _noise(self, count: int) -> Values:
        """Noise of deviation 1; heavy tails are those of Student's t with 3 degrees of freedom."""
        if self.machine.heavy:
            return self.draw.standard_t(3, count) / math.sqrt(3)
        return self.draw.standard_normal(count)


def _phases(times_ms: Values, gap_ms: float, length_ms: float, draw: np.random.Generator) -> Values:
    """1 where a time lies in a phase, else 0; gaps and lengths are exponentially distributed."""
    phases = int(times_ms[-1] / gap_ms * 3) + 20
    spans = np.stack([draw.exponential(gap_ms, phases), draw.exponential(length_ms, phases)], 1)
    # The time before the sitting is part of the process: it does not begin with a gap.
    edges = np.cumsum(spans.ravel()) - draw.uniform(0, 5 * gap_ms)
    return (np.searchsorted(edges, times_ms, side="right") % 2).astype(float)


def _ar1(correlation: float, deviation: float, count: int, draw: np.random.Generator) -> Values:
    """An AR(1) process with this deviation."""
    steps = draw.standard_normal(count) * deviation * math.sqrt(1 - correlation**2)
    steps[0] = draw.standard_normal() * deviation
    values, level = np.empty(count), 0.0
    for index, step in enumerate(steps.tolist()):
        level = correlation * level + step
        values[index] = level
    return values


def _arm(
    arm: int, places: NDArray[np.int64], before: NDArray[np.int64], ops: NDArray[np.int64]
) -> ArmFigures:
    """An arm's slices of a sitting, and its rate."""
    square, row, position = places.T.tolist()
    elapsed_ns = [SLICE_MS * 1_000_000] * len(ops)
    slices = Slices(
        square=square,
        row=row,
        position=position,
        predecessor=before.tolist(),
        wall_ns=elapsed_ns,
        ops=ops.tolist(),
        elapsed_ns=elapsed_ns,
        **dict.fromkeys(UNUSED, [0] * len(ops)),
    )
    return ArmFigures(arm=arm, slices=slices, figures={"rate": arm_totals(slices).rate})


class Seen(NamedTuple):
    """What an experiment said by its last look.

    `twice`: the same client differs from itself. `family`: equal arms have a false difference.
    `covered`: the intervals of all looks contain the truth.
    """

    twice: bool
    family: bool
    covered: bool


def run(machine: Machine, rates: Sequence[float], seed: int, truth: float, rule: StopRule) -> Seen:
    """Play an experiment with retiring arms, and look at it as a run does.

    Arms 0 and 1 are the same client; `truth` is ln of the ratio of arm 1 to arm 3.
    """
    experiment = Experiment(machine, rates, seed)
    cells, active = experiment.cells, list(range(len(rates)))
    family = all_pairs(cells)
    equal = _equal_pairs(machine, rates, cells)
    seen = Seen(False, False, True)
    for sitting in range(1, rule.looks[-1] + 1):
        experiment.play(active)
        if sitting not in rule.looks:
            continue
        looked = look(experiment.sittings, rule, final=False)
        decisions = decide_family(looked, family, "rate")
        told = {pair: of.p_holm for pair, of in decisions.items() if of.p_holm is not None}
        false = any(pair in told and told[pair] <= rule.level for pair in equal)
        seen = Seen(
            seen.twice or _differs(looked, (cells[0], cells[1])),
            seen.family or false or _false_lead(looked, cells, equal),
            seen.covered and _covers(experiment.sittings, (cells[1], cells[3]), truth, rule),
        )
        # The two arms of the A/A test stay, and so does the pair whose intervals are watched.
        gone = may_retire(decisions, (cells[0], cells[1], cells[3]))
        active = [arm for arm in active if cells[arm] not in gone]
    return seen


def _equal_pairs(machine: Machine, rates: Sequence[float], cells: Sequence[Cell]) -> set[Pair]:
    """The pairs whose true ratio is 1."""
    # An arm that takes speed from all others, and not from itself, is faster in turns.
    kinds = [
        (rate, arm in machine.slow, bool(machine.carried) and arm == 2)
        for arm, rate in enumerate(rates)
    ]
    return {
        (cells[one], cells[two])
        for one in range(len(rates))
        for two in range(one + 1, len(rates))
        if kinds[one] == kinds[two]
    }


def _false_lead(looked: Looked, cells: Sequence[Cell], equal: set[Pair]) -> bool:
    """Whether the winner is told from a runner-up that is equal."""
    (first, _), (second, _), *_ = rank(looked.sittings, cells, ROUND_FIGURES["rate"])
    pair = (first, second)
    if pair not in equal and pair[::-1] not in equal:
        return False
    return _differs(looked, pair)


def _differs(looked: Looked, pair: Pair) -> bool:
    """Whether a pair differs by itself, whatever the margin."""
    found = decide_lead(estimate_pair(looked.sittings, *pair, "rate").estimate, looked.rule)
    return found.p is not None and found.p <= looked.rule.level


def _covers(sittings: Sittings, pair: Pair, truth: float, rule: StopRule) -> bool:
    estimate = estimate_pair(sittings, *pair, "rate").estimate
    if estimate is None:
        return False
    ratio = estimate.ratio(rule.confidence)
    return (ratio.low or 0) <= math.exp(truth) <= (ratio.high or math.inf)


def truth_of(machine: Machine, rates: Sequence[float], sittings: int = 4000) -> float:
    """The mean of ln(arm 1 / arm 3) per sitting: exact by symmetry, or from many sittings."""
    if (1 in machine.slow) == (3 in machine.slow):
        return math.log(rates[1] / rates[3])
    experiment = Experiment(machine._replace(drift=0.0), rates, 987)
    for _ in range(sittings):
        experiment.play(range(len(rates)))
    estimate = estimate_pair(
        experiment.sittings, experiment.cells[1], experiment.cells[3], "rate"
    ).estimate
    assert estimate is not None
    return estimate.value


class Found(NamedTuple):
    """How a true difference was answered: at which look p was small, and at which it was told."""

    significant: int | None
    told: int | None


def find(machine: Machine, ratio: float, seed: int, rule: StopRule) -> Found:
    """Play a pair until it is told apart, or until the last look; the family has ARMS arms."""
    experiment = Experiment(machine, [ratio, *[1.0] * (ARMS - 1)], seed)
    family = all_pairs(experiment.cells)
    pair = (experiment.cells[0], experiment.cells[1])
    significant = None
    for sitting in range(1, rule.looks[-1] + 1):
        experiment.play(range(ARMS))
        if sitting not in rule.looks:
            continue
        decision = decide_family(look(experiment.sittings, rule, final=False), family, "rate")[pair]
        small = decision.p_holm is not None and decision.p_holm <= rule.level
        if significant is None and small:
            significant = sitting
        if decision.answer == "above":
            return Found(significant, sitting)
    return Found(significant, None)


def false_differences(experiments: int) -> None:
    """Print the first table."""
    print(f"{'A/A experiments on a machine with':40}{'twice':>8}{'family':>8}{'covered':>9}")
    rule, rates = StopRule(), [1.0] * ARMS
    for machine in MACHINES:
        truth = truth_of(machine, rates)
        seen = [run(machine, rates, seed, truth, rule) for seed in range(experiments)]
        twice, family, covered = (100 * float(np.mean(of)) for of in zip(*seen, strict=True))
        print(f"{machine.name:40}{twice:7.1f}%{family:7.1f}%{covered:8.1f}%", flush=True)


def power(experiments: int) -> None:
    """Print the second table."""
    rule = StopRule()
    print(f"\n{'a true difference, by sittings':40}{'p small':>9}{'told':>8}{'sittings':>10}")
    for deviation in (0.01, 0.02, 0.04):
        for ratio in (1.03, 1.05, 1.1, 1.2):
            machine = Machine("", sitting=deviation)
            found = [find(machine, ratio, seed, rule) for seed in range(experiments)]
            told = [of.told for of in found if of.told]
            small = 100 * float(np.mean([of.significant is not None for of in found]))
            name = f"{100 * ratio - 100:.0f} %, arms differ by {100 * deviation:.0f} %"
            mean = f"{np.mean(told):10.1f}" if told else f"{'–':>10}"
            print(f"{name:40}{small:8.0f}%{100 * len(told) / experiments:7.0f}%{mean}", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="Interleaved rounds where the truth is known.")
    parser.add_argument("--experiments", type=int, default=2000)
    experiments = parser.parse_args().experiments
    print(f"{experiments} experiments a row, looks after {LOOKS} sittings, {ARMS} arms")
    false_differences(experiments)
    power(max(1, experiments // 4))


if __name__ == "__main__":
    main()
