"""Comparisons of a run as it is looked at: before, between and after its looks."""

import math

import msgspec
import pytest

from cachemark.analysis.rounds.comparing import (
    Looked,
    compare_chosen,
    compare_pairs,
    decide_pairs,
    look,
)
from cachemark.analysis.rounds.family import FamilyPair, all_pairs
from cachemark.analysis.rounds.looks import StopRule
from cachemark.analysis.rounds.pairs import ROUND_FIGURES, read_sittings, retired_arms
from cachemark.analysis.rounds.ranking import rank
from cachemark.analysis.statistics import Comparison
from cachemark.model.outcome import Cell
from tests.builders.rounds import outcome, run, sitting


def cell(client: str) -> Cell:
    return Cell(client=client, server="embedded", workload="get", load="one")


A, B, C = cell("a"), cell("b"), cell("c")
RATES = {"a": 30_000, "b": 20_000, "c": 20_000}


def family_of(
    looked: Looked, pairs: tuple[FamilyPair, ...], figure: str
) -> dict[FamilyPair, Comparison]:
    decisions = decide_pairs(looked, dict.fromkeys(pairs, 1.0), figure)
    return compare_pairs(looked, decisions, figure, len(pairs))


@pytest.mark.parametrize(
    ("sittings", "final", "answer", "scope"),
    [
        (3, True, "open", "within"),
        (5, False, "open", "over"),
        (6, False, "better", "over"),
        (8, False, "better", "over"),
    ],
)
def test_answers_come_with_the_first_look(
    sittings: int, final: bool, answer: str, scope: str
) -> None:
    looked = look(read_sittings(run(RATES, sittings)), StopRule(), final=final)
    found = family_of(looked, all_pairs([A, B, C]), "rate")[A, B]
    assert (found.answer, found.scope, found.count) == (answer, scope, sittings)
    assert found.answered_at == (sittings // 3 * 3 if sittings >= 6 else 0)
    assert found.ratio is not None
    assert found.ratio.low is not None
    assert found.confidence == pytest.approx(0.9842)
    assert found.typical is not None
    assert found.typical.value == pytest.approx(1.5, rel=0.05)
    assert not found.gap


def test_a_fixed_number_of_sittings_answers_at_its_end() -> None:
    sittings = read_sittings(run(RATES, 4))
    rule = StopRule(looks=())
    pair = compare_chosen(look(sittings, rule, final=True), (A, B), "rate")
    assert (pair.answer, pair.answered_at, pair.confidence) == ("better", 4, 0.95)


def test_an_open_pair_says_how_many_sittings_it_needs() -> None:
    noisy = look(read_sittings(run(RATES, 6, deviation=0.1)), StopRule(), final=True)
    found = family_of(noisy, all_pairs([A, B, C]), "rate")
    assert found[B, C].answer == "open"
    assert (found[B, C].needed or 0) > 6
    quiet = look(read_sittings(run(RATES, 6, deviation=0.002)), StopRule(), final=True)
    settled = family_of(quiet, all_pairs([A, B, C]), "rate")[B, C]
    assert (settled.answer, settled.needed) == ("equal", None)


def test_rare_slow_slices_separate_totals_from_the_typical_round() -> None:
    def rate(arm: int, _before: int, number: int) -> float:
        return 10_000 if arm == 0 and number % 5 == 0 else 20_000

    cells = [A, B]
    made = [
        outcome(cells[arm], block, cells, slices)
        for block in range(6)
        for arm, slices in enumerate(sitting(2, 12, rate, block))
    ]
    found = compare_chosen(look(read_sittings(made), StopRule(), final=True), (A, B), "rate")
    assert found.gap
    assert found.typical is not None
    assert found.typical.value == pytest.approx(1)
    assert found.ratio is not None
    assert found.ratio.value < 0.95


def test_a_retired_arms_pair_is_marked_and_keeps_its_answer() -> None:
    made = [*run(RATES, 6), *run({"b": 20_000, "c": 20_000}, 3, first=6)]
    rule = StopRule()
    retired = retired_arms(made, rule.looks)
    looked = look(read_sittings(made), rule, final=True, retired=retired)
    found = family_of(looked, all_pairs([A, B, C]), "rate")
    assert (found[A, B].answer, found[A, B].stopped_early, found[A, B].count) == (
        "better",
        True,
        6,
    )
    assert (found[B, C].stopped_early, found[B, C].count) == (False, 9)


def test_an_arm_that_never_played_leaves_the_pair_open() -> None:
    looked = look(read_sittings(run({"a": 30_000, "b": 20_000}, 6)), StopRule(), final=True)
    found = family_of(looked, all_pairs([A, B, C]), "rate")
    assert (found[A, C].answer, found[A, C].ratio) == ("open", None)
    assert found[A, C].why
    assert found[A, B].answer == "better"


def test_arms_are_ranked_by_what_they_did_beside_each_other() -> None:
    # b is a tenth faster than a; it was invalid whenever the machine was fast.
    made = []
    for block in range(8):
        speed = 2.0 if block % 2 else 1.0
        made += run({"a": 10_000 * speed, "b": 11_000 * speed}, 1, first=block)
    made = [
        msgspec.structs.replace(of, verdict="INVALID")
        if of.trial.cell == B and of.trial.block % 2
        else of
        for of in made
    ]
    sittings = read_sittings(made)
    (first, second), _ = rank(sittings, [A, B], ROUND_FIGURES["rate"])
    assert math.log(first.value / second.value) == pytest.approx(0.0953, abs=0.03)
    assert (first.cell, second.cell) == (B, A)
    assert [of.cell for of in rank(sittings, [A, B], ROUND_FIGURES["p50"])[0]] == [B, A]
    assert rank({}, [A, B], ROUND_FIGURES["rate"]) == ([], "")
