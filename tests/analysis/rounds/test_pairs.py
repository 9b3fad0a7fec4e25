"""Pairs of arms over sittings: direct where they met, else through the reference."""

import math

import msgspec
import pytest

from cachemark.analysis.rounds.looks import LOOKS
from cachemark.analysis.rounds.pairs import (
    estimate_pair,
    first_sittings,
    read_sittings,
    retired_arms,
)
from cachemark.model.outcome import Cell, Outcome
from tests.builders.rounds import run


def cell(client: str) -> Cell:
    return Cell(client=client, server="embedded", workload="get", load="one")


A, B, C = cell("a"), cell("b"), cell("c")


def test_arms_of_the_same_sitting_are_compared_directly() -> None:
    found = estimate_pair(read_sittings(run({"a": 30_000, "b": 20_000}, 6)), A, B, "rate")
    assert found.estimate is not None
    assert (found.sittings, found.scope, found.through_reference) == (6, "over", False)
    assert math.exp(found.estimate.value) == pytest.approx(1.5, rel=0.03)
    assert found.estimate.degrees_of_freedom == 5


@pytest.mark.parametrize("figure", ["rate", "client-cpu"])
def test_below_four_sittings_there_is_only_what_happened_within(figure: str) -> None:
    made = run({"a": 30_000, "b": 20_000}, 3, cpu_us={"a": 10})
    found = estimate_pair(read_sittings(made), A, B, figure)
    assert found.estimate is not None
    assert (found.sittings, found.scope) == (3, "within")
    expected = {"rate": 1.5, "client-cpu": 0.5}[figure]
    assert math.exp(found.estimate.value) == pytest.approx(expected, rel=0.03)
    assert found.estimate.error is not None


def test_percentiles_have_no_interval_within_a_sitting() -> None:
    found = estimate_pair(read_sittings(run({"a": 30_000, "b": 20_000}, 3)), A, B, "p50")
    assert found.estimate is not None
    assert found.scope == "within"
    assert found.estimate.error is None
    assert math.exp(found.estimate.value) == pytest.approx(1 / 1.5, rel=0.1)


def test_a_figure_that_some_sittings_lack_is_not_compared() -> None:
    made = run({"a": 30_000, "b": 20_000}, 6)
    # 500 operations have a p99 and no p99.9.
    sittings = read_sittings(made)
    assert estimate_pair(sittings, A, B, "p99").estimate is not None
    assert estimate_pair(sittings, A, B, "p99.9").why == "some sittings lack it"


def test_only_valid_outcomes_count() -> None:
    made = run({"a": 30_000, "b": 20_000}, 6)
    made[0] = msgspec.structs.replace(made[0], verdict="INVALID")
    assert estimate_pair(read_sittings(made), A, B, "rate").sittings == 5


def sets(sittings: int, deviation: float = 0.02) -> list[Outcome]:
    return [
        *run({"r": 10_000, "a": 30_000}, sittings, deviation=deviation),
        *run({"r": 10_000, "b": 20_000}, sittings, deviation=deviation, part=1),
    ]


def test_arms_of_two_sets_use_both_variances_with_the_reference() -> None:
    sittings = read_sittings(sets(6))
    found = estimate_pair(sittings, A, B, "rate")
    parts = [estimate_pair(sittings, one, cell("r"), "rate").estimate for one in (A, B)]
    assert found.estimate is not None
    assert found.through_reference
    assert found.sittings == 6
    assert math.exp(found.estimate.value) == pytest.approx(1.5, rel=0.05)
    errors = [part.error for part in parts if part and part.error]
    assert found.estimate.error == pytest.approx(math.hypot(*errors))
    assert estimate_pair(read_sittings(sets(3)), A, B, "rate").scope == "within"


def test_the_reference_meets_its_own_pair_in_every_set() -> None:
    made = [
        *run({"r": 10_000, "r#again": 10_000, "a": 30_000}, 6),
        *run({"r": 10_000, "r#again": 10_000, "b": 30_000}, 6, part=1),
    ]
    found = estimate_pair(read_sittings(made), cell("r"), cell("r#again"), "rate")
    assert found.sittings == 12


def test_a_client_played_twice_is_compared_by_both_arms() -> None:
    made = run({"a": 30_000, "b": 10_000, "b#again": 14_400}, 6, deviation=0.001)
    sittings = read_sittings(made)
    found = estimate_pair(sittings, A, B, "rate").estimate
    # The geometric mean of 10,000 and 14,400 is 12,000.
    assert found is not None
    assert math.exp(found.value) == pytest.approx(2.5, rel=0.01)
    same = estimate_pair(sittings, cell("b#again"), B, "rate").estimate
    assert same is not None
    assert math.exp(same.value) == pytest.approx(1.44, rel=0.01)
    cpu = estimate_pair(sittings, A, B, "client-cpu").estimate
    alone = estimate_pair(
        read_sittings([of for of in made if of.trial.cell != cell("b#again")]), A, B, "client-cpu"
    ).estimate
    assert cpu == alone


def test_each_sitting_has_the_mean_of_both_log_ratios() -> None:
    sittings = read_sittings(run(dict.fromkeys(["a", "b", "b#again"], 10_000.0), 6))
    found = estimate_pair(sittings, A, B, "rate").estimate
    again = estimate_pair(sittings, A, cell("b#again"), "rate").estimate
    assert found is not None
    assert again is not None
    rates = [[arms[of].figures["rate"] or 0.0 for of in (A, B)] for arms in sittings.values()]
    alone = [math.log(own / other) for own, other in rates]
    both = [(one + two) / 2 for one, two in zip(alone, again.logs, strict=True)]
    assert found.logs == pytest.approx(both)


def test_a_repetition_that_failed_leaves_the_other_arm() -> None:
    made = run({"a": 30_000, "b": 10_000, "b#again": 14_400}, 6, deviation=0.001)
    left = [of for of in made if of.trial.cell != cell("b#again") or of.trial.block < 3]
    found = estimate_pair(read_sittings(left), A, B, "rate").estimate
    assert found is not None
    assert [math.exp(log) for log in found.logs] == pytest.approx([2.5] * 3 + [3] * 3, rel=0.01)


def test_a_reference_that_failed_costs_only_its_sitting() -> None:
    made = sets(6)
    made[0] = msgspec.structs.replace(made[0], verdict="INVALID")
    found = estimate_pair(read_sittings(made), A, B, "rate")
    assert (found.sittings, found.through_reference) == (5, True)


def test_arms_without_a_common_sitting_or_reference_have_no_ratio() -> None:
    made = [*run({"a": 1000}, 6), *run({"b": 1000}, 6, part=1)]
    found = estimate_pair(read_sittings(made), A, B, "rate")
    assert found.estimate is None
    assert "no reference" in found.why
    assert estimate_pair({}, A, B, "rate").estimate is None


def test_the_first_sittings_are_those_of_the_first_blocks() -> None:
    sittings = read_sittings(sets(6))
    assert {key.block for key in first_sittings(sittings, 4)} == {0, 1, 2, 3}
    assert len(first_sittings(sittings, 4)) == 8


def test_an_arm_has_retired_when_later_sittings_lack_it() -> None:
    made = [*run({"a": 1000, "b": 900, "c": 500}, 6), *run({"a": 1000, "b": 900}, 3, first=6)]
    assert retired_arms(made, LOOKS) == {C}
    failed = msgspec.structs.replace(made[2], state="failed", verdict=None, rounds=None)
    moved = msgspec.structs.replace(failed, trial=msgspec.structs.replace(failed.trial, block=8))
    assert retired_arms([*made, moved], LOOKS) == frozenset()
    assert retired_arms([], LOOKS) == frozenset()


def test_an_arm_absent_from_a_broken_last_sitting_remains() -> None:
    made = [*run({"a": 1000, "b": 900, "c": 500}, 7), *run({"a": 1000, "b": 900}, 1, first=7)]
    assert retired_arms(made, LOOKS) == frozenset()
    # Without looks, no arm leaves.
    made = [*run({"a": 1000, "b": 900, "c": 500}, 6), *run({"a": 1000, "b": 900}, 1, first=6)]
    assert retired_arms(made, ()) == frozenset()


def test_arms_of_sets_that_share_a_sitting_are_compared_directly() -> None:
    made = [*run({"a": 30_000, "x": 10_000}, 6), *run({"b": 20_000, "y": 10_000}, 6)]
    found = estimate_pair(read_sittings(made), A, B, "rate")
    assert (found.sittings, found.through_reference, found.scope) == (6, False, "over")
    assert found.estimate is not None
    assert math.exp(found.estimate.value) == pytest.approx(1.5, rel=0.05)
