"""The effect of an arm on its successor is found, with an interval that holds."""

import random

import msgspec
import pytest

from cachemark.analysis.rounds.carry_over import CarryOverTable, carry_over
from cachemark.analysis.rounds.pairs import read_sittings
from cachemark.analysis.rounds.texts import carry_over_texts
from cachemark.model.outcome import Cell, Outcome
from tests.builders.rounds import Rate, outcome, sitting

CELLS = [Cell(client=f"c{n}", server="embedded", workload="get", load="one") for n in range(5)]
LEVELS = (30_000, 20_000, 20_000, 12_000, 25_000)


def machine(carried: float, draw: random.Random, noise: float = 0.05) -> Rate:
    """Arm 1 takes a part of its successor's speed; every tenth slice has a level of its own."""

    def rate(arm: int, before: int, number: int) -> float:
        level = LEVELS[arm] * (1 - carried if before == 1 and arm != 1 else 1)
        return level * draw.lognormvariate(0, noise) * (1 + number / 500)

    return rate


def played(arms: int, sittings: int, carried: float, seed: int = 0) -> list[Outcome]:
    draw = random.Random(seed)
    made: list[Outcome] = []
    for block in range(sittings):
        slices = sitting(arms, 3, machine(carried, draw), draw.randrange(10**6))
        made += [outcome(CELLS[n], block, CELLS[:arms], slices[n]) for n in range(arms)]
    return made


def found(made: list[Outcome]) -> CarryOverTable:
    table = carry_over(read_sittings(made))
    assert table is not None
    return table


@pytest.mark.parametrize("arms", [3, 4, 5])
def test_an_arm_that_slows_its_successor_is_found(arms: int) -> None:
    table = found(played(arms, 6, 0.1))
    assert (table.sittings, table.scope, table.shown) == (6, "over", True)
    effect = table.arms[1].successor
    assert effect.value == pytest.approx(0.9, rel=0.02)
    assert effect.high is not None
    assert effect.high < 1
    assert effect.value == min(arm.successor.value for arm in table.arms)
    assert table.arms[1].p_holm is not None
    assert table.arms[1].p_holm < 0.001
    # The others come after it in one of `arms` rows or more, and it never does.
    assert table.moves == pytest.approx((1 / 0.9) ** (1 / (arms - 1)), rel=0.03)
    assert table.arms[1].moved == max(arm.moved for arm in table.arms)


def test_nothing_is_shown_where_nothing_is_carried_over() -> None:
    tables = [found(played(4, 6, 0.0, seed)) for seed in range(40)]
    # 5 % and 3 standard errors of 40.
    assert sum(table.shown for table in tables) <= 6
    assert sum(table.moves for table in tables) / 40 < 1.01


@pytest.mark.parametrize("carried", [0.0, 0.1])
def test_carry_over_moves_ratios_by_no_more_than_the_limit(carried: float) -> None:
    arms, truth = 4, (1 / (1 - carried)) ** (1 / 3)
    within = 0
    for seed in range(40):
        table = found(played(arms, 6, carried, seed))
        assert table.moves_at_most is not None
        assert table.moves_at_most > table.moves
        within += truth <= table.moves_at_most
    # 95 % less 3 standard errors.
    assert within >= 34
    assert any("by at most" in line for line in carry_over_texts(found(played(arms, 6, carried))))
    assert found(played(arms, 2, carried)).moves_at_most is None


def test_few_sittings_tell_what_happened_within_them() -> None:
    table = found(played(4, 2, 0.2))
    assert (table.sittings, table.scope, table.shown) == (2, "within", True)
    covered = 0
    for seed in range(100):
        interval = found(played(4, 1, 0.2, seed)).arms[1].successor
        assert interval.low is not None
        assert interval.high is not None
        covered += interval.low <= 0.8 <= interval.high
    # 95 % less 3 standard errors.
    assert covered >= 88


def test_it_needs_three_arms_and_sittings_with_all_of_them() -> None:
    assert carry_over(read_sittings(played(2, 6, 0.1))) is None
    assert carry_over({}) is None
    made = played(3, 2, 0.1)
    made[0] = msgspec.structs.replace(made[0], verdict="INVALID")
    assert found(made).sittings == 1


def test_idle_cpu_of_an_arms_own_slices_and_later_ones() -> None:
    made = played(3, 2, 0.0)
    busy = []
    for of in made:
        assert of.rounds is not None
        slices = of.rounds.slices
        # Arm 2 goes on working for a tenth of the time after its turn.
        idle = [
            w // 10 if p == 2 else 0
            for w, p in zip(slices.wall_ns, slices.predecessor, strict=True)
        ]
        slices = msgspec.structs.replace(slices, idle_cpu_ns=idle)
        busy.append(
            msgspec.structs.replace(of, rounds=msgspec.structs.replace(of.rounds, slices=slices))
        )
    arms = found(busy).arms
    assert [arm.idle_cores_after for arm in arms] == pytest.approx([0, 0, 0.1])
    assert arms[2].idle_cores_during == 0
    assert arms[0].idle_cores_during == pytest.approx(0.05, abs=0.02)
