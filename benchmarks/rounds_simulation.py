"""The answers of interleaved rounds in simulated experiments whose truth is known.

    python benchmarks/rounds_simulation.py                      the full table, some minutes
    python benchmarks/rounds_simulation.py --experiments 200    the same, coarser

Every experiment is played in virtual time and judged by the functions that judge real runs. For
each kind of machine, the first table has

- twice: how often a client that is played twice differs from itself at any look (p without margin),
- family: how often any difference in a family of equal clients is found, also the winner's lead,
- covered: how often the intervals of all looks contain the truth, for a pair of clients.

The second table has the power: how often a true difference is found, and after how many sittings.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cachemark.analysis.rounds.comparing import Looked, decide_pairs, look
from cachemark.analysis.rounds.family import FamilyPair, all_pairs, decide_chosen, may_retire
from cachemark.analysis.rounds.looks import LOOKS, StopRule
from cachemark.analysis.rounds.pairs import (
    ROUND_FIGURES,
    ArmFigures,
    SittingKey,
    Sittings,
    estimate_pair,
)
from cachemark.analysis.rounds.ranking import rank
from cachemark.analysis.rounds.sitting import total_rate
from cachemark.model.outcome import Cell
from cachemark.model.rounds import Slices
from cachemark.runs.sittings.order import random_square, turns

SLICE_MS, TURN_MS, SETUP_MS = 30, 2, 4000
ARMS = 4
RATE = 20_000.0
# The columns of slices that the simulation leaves at 0.
UNUSED = ("errors", "lead_in_ops", "worker_cpu_ns", "server_cpu_ns", "idle_cpu_ns", "steal_ns")
Values = NDArray[np.float64]


class Machine(NamedTuple):
    """The disturbances of an experiment. Deviations are of logarithms.

    `sitting`: deviation of an arm's level between sittings. `slice`: deviation between slices.
    `drift`: change of the machine's speed over the run. `bursts`: phases of other load, which take
    40 % of the speed. `slow`: the arms that have slow phases, at half of their speed.
    `carried`: the part of its successor's speed that arm 2 takes. `squares`: the length of a
    sitting; 6 of them take 4 s.
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
        """Noise of deviation 1; heavy tails follow Student's t with 3 degrees of freedom."""
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
    return ArmFigures(arm=arm, slices=slices, figures={"rate": total_rate(slices)})


class Errors(NamedTuple):
    """The errors of an experiment, up to its last look.

    `twice`: the same client differs from itself. `family`: equal arms have a false difference.
    `covered`: the intervals of all looks contain the truth.
    """

    twice: bool
    family: bool
    covered: bool


def run(
    machine: Machine, rates: Sequence[float], seed: int, truth: float, rule: StopRule
) -> Errors:
    """Play an experiment with retiring arms, and look at it as a run does.

    Arms 0 and 1 are the same client; `truth` is ln of the ratio of arm 1 to arm 3.
    """
    experiment = Experiment(machine, rates, seed)
    cells, active = experiment.cells, list(range(len(rates)))
    family = all_pairs(cells)
    equal = _equal_pairs(machine, rates, cells)
    errors = Errors(False, False, True)
    for sitting in range(1, rule.looks[-1] + 1):
        experiment.play(active)
        if sitting not in rule.looks:
            continue
        looked = look(experiment.sittings, rule, final=False)
        decisions = decide_pairs(looked, dict.fromkeys(family, 1.0), "rate")
        p_values = {pair: of.p_holm for pair, of in decisions.items() if of.p_holm is not None}
        false = any(pair in p_values and p_values[pair] <= rule.level for pair in equal)
        errors = Errors(
            errors.twice or _differs(looked, (cells[0], cells[1])),
            errors.family or false or _false_lead(looked, cells, equal),
            errors.covered and _covers(experiment.sittings, (cells[1], cells[3]), truth, rule),
        )
        # Both arms of the A/A test stay, and both arms of the pair whose intervals are checked.
        retired = may_retire(decisions, (cells[0], cells[1], cells[3]))
        active = [arm for arm in active if cells[arm] not in retired]
    return errors


def _equal_pairs(
    machine: Machine, rates: Sequence[float], cells: Sequence[Cell]
) -> set[FamilyPair]:
    """The pairs whose true ratio is 1."""
    # An arm that takes speed from all others but not from itself has a higher mean in turns.
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


def _false_lead(looked: Looked, cells: Sequence[Cell], equal: set[FamilyPair]) -> bool:
    """Whether the winner has a significant lead over a runner-up that is equal."""
    (first, second, *_), _ = rank(looked.sittings, cells, ROUND_FIGURES["rate"])
    pair = (first.cell, second.cell)
    if pair not in equal and pair[::-1] not in equal:
        return False
    return _differs(looked, pair)


def _differs(looked: Looked, pair: FamilyPair) -> bool:
    """Whether a pair differs significantly, without a margin and without a correction."""
    lead = decide_chosen(estimate_pair(looked.sittings, *pair, "rate").estimate, looked.rule, 1)
    return lead.p is not None and lead.p <= looked.rule.level


def _covers(sittings: Sittings, pair: FamilyPair, truth: float, rule: StopRule) -> bool:
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


class Detection(NamedTuple):
    """The sittings after which a difference was significant, and beyond the margin."""

    significant: int | None
    decided: int | None


def find(machine: Machine, ratio: float, seed: int, rule: StopRule) -> Detection:
    """Play until a pair is decided, or until the last look; the family has ARMS arms."""
    experiment = Experiment(machine, [ratio, *[1.0] * (ARMS - 1)], seed)
    family = all_pairs(experiment.cells)
    pair = (experiment.cells[0], experiment.cells[1])
    significant = None
    for sitting in range(1, rule.looks[-1] + 1):
        experiment.play(range(ARMS))
        if sitting not in rule.looks:
            continue
        looked = look(experiment.sittings, rule, final=False)
        decision = decide_pairs(looked, dict.fromkeys(family, 1.0), "rate")[pair]
        small = decision.p_holm is not None and decision.p_holm <= rule.level
        if significant is None and small:
            significant = sitting
        if decision.answer == "better":
            return Detection(significant, sitting)
    return Detection(significant, None)


def false_differences(experiments: int) -> None:
    """Print the first table."""
    print(f"{'A/A experiments on a machine with':40}{'twice':>8}{'family':>8}{'covered':>9}")
    rule, rates = StopRule(), [1.0] * ARMS
    for machine in MACHINES:
        truth = truth_of(machine, rates)
        errors = [run(machine, rates, seed, truth, rule) for seed in range(experiments)]
        twice, family, covered = (100 * float(np.mean(of)) for of in zip(*errors, strict=True))
        print(f"{machine.name:40}{twice:7.1f}%{family:7.1f}%{covered:8.1f}%", flush=True)


def power(experiments: int) -> None:
    """Print the second table."""
    rule = StopRule()
    print(f"\n{'a true difference, by sittings':40}{'p small':>9}{'decided':>8}{'sittings':>10}")
    for deviation in (0.01, 0.02, 0.04):
        for ratio in (1.03, 1.05, 1.1, 1.2):
            machine = Machine("", sitting=deviation)
            detections = [find(machine, ratio, seed, rule) for seed in range(experiments)]
            decided = [of.decided for of in detections if of.decided]
            small = 100 * float(np.mean([of.significant is not None for of in detections]))
            name = f"{100 * ratio - 100:.0f} %, arms differ by {100 * deviation:.0f} %"
            mean = f"{np.mean(decided):10.1f}" if decided else f"{'–':>10}"
            decided_percent = 100 * len(decided) / experiments
            print(f"{name:40}{small:8.0f}%{decided_percent:7.0f}%{mean}", flush=True)


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
