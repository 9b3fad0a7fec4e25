"""From outcomes to answers, and to the sentences that say them."""

import random

import msgspec
import pytest

from cachemark.analysis.rounds.answers import Answers, answers
from cachemark.analysis.rounds.looks import StopRule
from cachemark.analysis.rounds.pairs import ROUND_FIGURES, read_sittings
from cachemark.analysis.rounds.questions import Question, questions_of
from cachemark.analysis.rounds.ranking import rank
from cachemark.analysis.rounds.texts import (
    carry_over_texts,
    lead_text,
    open_words,
    pair_text,
    rate_and_cpu_text,
    texts,
    twice_text,
)
from cachemark.model.outcome import Cell, Outcome
from tests.builders.rounds import run

RATE = ROUND_FIGURES["rate"]
RATES = {"fast": 30_000, "slow": 20_000, "slow#again": 20_000, "slowest": 10_000}


def asked(made: list[Outcome], reference: str = "") -> list[Question]:
    return questions_of(list(dict.fromkeys(of.trial.cell for of in made)), reference)


def answered(made: list[Outcome], *, final: bool = True, rule: StopRule | None = None) -> Answers:
    return answers(made, asked(made), rule or StopRule(), final=final)


def test_clients_compared_on_each_server_and_servers_for_each_client() -> None:
    cells = [
        Cell(client=client, server=server, workload="w", load="l")
        for client in ("a", "b", "a#again")
        for server in ("s", "t")
    ]
    found = questions_of(cells, "b", "t")
    assert [(of.kind, of.common, len(of.cells)) for of in found] == [
        ("clients", "s", 2),
        ("clients", "t", 2),
        ("servers", "a", 2),
        ("servers", "b", 2),
    ]
    assert found[0].reference.client == "b"
    assert found[2].reference.server == "t"
    assert found[0].twice == (cells[4], cells[0])
    assert found[2].twice is None
    assert [found[2].name(cell) for cell in found[2].cells] == ["s", "t"]
    assert questions_of(cells[:1]) == []


def test_a_ranking_has_places_ratios_and_its_winners_test() -> None:
    made = run(RATES, 6)
    found = answers(made, asked(made, "slow"), StopRule(), final=True)
    ranking = found.groups[0].ranking("rate")
    assert ranking is not None
    assert [place.name for place in ranking.places] == ["fast", "slow", "slowest"]
    assert ranking.places[0].value == pytest.approx(30_000, rel=0.02)
    assert ranking.places[0].to_winner is None
    assert ranking.places[1].to_reference is None
    to_winner = ranking.places[2].to_winner
    assert to_winner is not None
    assert to_winner.ratio is not None
    assert (to_winner.answer, to_winner.first.client) == ("worse", "slowest")
    assert to_winner.ratio.value == pytest.approx(1 / 3, rel=0.05)
    assert ranking.lead is not None
    assert (ranking.lead.answer, ranking.lead.second.client) == ("better", "slow")
    # The repetition of the A/A test is in no family.
    assert len(ranking.pairs) == 3
    assert found.settled
    assert found.more_sittings is None


def test_all_figures_that_every_cell_has_are_ranked() -> None:
    found = answered(run(RATES, 6)).groups[0]
    assert [of.figure for of in found.rankings] == [
        "rate",
        "client-cpu",
        "server-cpu",
        "p50",
        "p99",
    ]
    assert found.primary == "rate"


def test_the_rate_of_an_open_loop_is_not_ranked() -> None:
    made = [
        msgspec.structs.replace(of, load=msgspec.structs.replace(of.load, schedule="poisson"))
        for of in run(RATES, 6)
    ]
    found = answered(made).groups[0]
    assert found.primary == "p99"
    assert found.ranking("rate") is None


def test_rate_and_cpu_that_disagree_are_both_told() -> None:
    made = run({"a": 30_000, "b": 20_000}, 6, cpu_us={"a": 30, "b": 20})
    group = answered(made).groups[0]
    assert [of.verdict for of in group.rate_and_cpu] == ["disagree"]
    text = rate_and_cpu_text(group.rate_and_cpu[0], group.question)
    assert text.startswith("a has 1.49 (")
    assert "× the rate of b, and needs 1.50" in text
    made = run({"b": 20_000, "a": 30_000}, 6, cpu_us={"a": 20, "b": 30})
    assert [of.verdict for of in answered(made).groups[0].rate_and_cpu] == ["agree"]
    made = run({"a": 20_000, "b": 20_000}, 6, cpu_us={"a": 20, "b": 30})
    assert [of.verdict for of in answered(made).groups[0].rate_and_cpu] == ["cpu"]


def first_line(made: list[Outcome], *, final: bool = True, sitting_s: float = 0) -> str:
    found = answered(made, final=final)
    ranking = found.groups[0].ranking("rate")
    assert ranking is not None
    return lead_text(ranking, found.groups[0].question, found, sitting_s)


def test_the_sentences_say_what_is_settled_and_what_is_not() -> None:
    line = first_line(run(RATES, 6))
    assert line.startswith("fast has the highest rate: 1.5")
    assert line.endswith("× slow, the second.")
    equal = first_line(run({"a": 20_000, "b": 20_000}, 6, deviation=0.005))
    assert "the first two, are equal in rate within 5 %: " in equal
    still_open = first_line(run({"a": 20_000, "b": 20_000}, 6, deviation=0.1), sitting_s=30)
    assert "not settled: " in still_open
    assert "more minutes, unless the truth is near the margin." in still_open


def test_too_few_blocks_are_named_instead_of_an_endless_interval() -> None:
    found = answered(run(RATES, 6, deviation=0.02))
    ranking = found.groups[0].rankings[0]
    pair = ranking.pairs[0]
    assert pair.ratio is not None
    few = msgspec.structs.replace(
        pair, answer="open", unit="block", counts=(3, 3), narrow_at=8,
        ratio=msgspec.structs.replace(pair.ratio, value=1.2, low=0.001, high=1214.0),
    )  # fmt: skip
    text = open_words(few, found.rule)
    assert text == (
        "not settled: 1.20 ×. 3 blocks cannot give an interval here: with this variation,"
        " ±5 % takes about 8 blocks."
    )
    endless = open_words(msgspec.structs.replace(few, narrow_at=None), found.rule)
    assert endless.endswith("±5 % takes more than 1000 blocks.")


def test_before_there_is_an_answer_the_sentences_say_so() -> None:
    within = first_line(run(RATES, 2), final=False)
    assert within.startswith("Within 2 sittings, fast has the highest rate")
    assert within.endswith("That is no answer yet: it takes 6 sittings.")
    timed = first_line(run(RATES, 2), final=False, sitting_s=40)
    assert timed.endswith("it takes 6 sittings, about 3 more minutes.")
    so_far = first_line(run(RATES, 5), final=False)
    assert so_far.startswith("So far, after 5 sittings, fast has the highest rate")
    assert so_far.endswith("The first answer comes after 6.")
    timed = first_line(run(RATES, 4), final=False, sitting_s=40)
    assert timed.endswith("The first answer comes after 6, about 2 more minutes.")
    assert answered(run(RATES, 5), final=False).next_look == 6
    assert answered(run(RATES, 12), final=False).next_look is None


def test_the_second_arm_of_a_client_is_reported_beside_it() -> None:
    found = answered(run(RATES, 6))
    ranking, question = found.groups[0].rankings[0], found.groups[0].question
    assert twice_text(ranking, question).startswith("slow played twice: ")
    assert "are within the instrument's own error on this machine; the lead of" in twice_text(
        ranking, question
    )
    wrong = answered(run({**RATES, "slow#again": 32_000}, 6))
    ranking = wrong.groups[0].rankings[0]
    assert ranking.bound > 1.55
    assert twice_text(ranking, question).endswith("and so is the lead of 18 %.")
    assert ranking.lead is not None
    assert ranking.lead.answer == "open"


def test_every_pair_has_a_sentence() -> None:
    found = answered(run({"a": 20_000, "b": 20_000, "c": 10_000}, 6, deviation=0.03))
    group = found.groups[0]
    lines = [pair_text(of, group.question, found.rule) for of in group.rankings[0].pairs]
    assert len(lines) == 3
    assert "a to b: not settled: " in lines[0]
    assert "a to c: 2.0" in lines[1]


def test_cells_of_two_servers_give_four_questions() -> None:
    cells = {"a": 30_000, "b": 20_000}
    # The clients of each server are a set; the sets share their sittings.
    found = answered([*run(cells, 6), *run(cells, 6, server="memcached")])
    assert [of.question.kind for of in found.groups] == ["clients"] * 2 + ["servers"] * 2
    servers = found.groups[2].ranking("rate")
    assert servers is not None
    assert {place.name for place in servers.places} == {"embedded", "memcached"}
    assert servers.lead is not None
    assert not servers.lead.through_reference
    assert servers.lead.typical is None
    assert len(texts(found)) == 4


def test_clients_of_different_sets_are_ranked_through_the_reference() -> None:
    made = [
        *run({"r": 10_000, "a": 30_000}, 6, deviation=0.005),
        *run({"r": 10_000, "b": 20_000}, 6, deviation=0.005, part=1),
    ]
    found = answered(made)
    ranking = found.groups[0].rankings[0]
    assert [place.name for place in ranking.places] == ["a", "b", "r"]
    assert ranking.lead is not None
    assert (ranking.lead.through_reference, ranking.lead.answer) == (True, "better")


def test_cells_beyond_a_set_are_tested_with_reference_and_first() -> None:
    rates = {f"c{n}": 10_000 * 1.2**n for n in range(10)}
    found = answered(run(rates, 6))
    ranking = found.groups[0].rankings[0]
    assert len(ranking.pairs) == 9
    assert ranking.lead is not None
    assert (ranking.lead.first.client, ranking.lead.answer) == ("c9", "better")
    to_first = [place.to_winner for place in ranking.places[1:]]
    assert [of.answer for of in to_first if of] == ["worse"] * 9


def test_a_pair_outside_the_family_is_corrected_for_all() -> None:
    rates = {f"c{n}": 10_000 * 1.02**n for n in range(10)}
    ranking = answered(run(rates, 6, deviation=0.02)).groups[0].rankings[0]
    chosen = ranking.places[3].to_winner
    assert chosen is not None
    assert chosen.ratio is not None
    assert chosen.ratio.p is not None
    assert chosen.p_holm == pytest.approx(min(1.0, 45 * chosen.ratio.p))
    assert chosen.answer == "open"
    # It would be an answer if it was tested by itself.
    assert chosen.ratio.p < 0.0158


def test_carry_over_is_told() -> None:
    found = answered(run({"a": 30_000, "b": 20_000, "c": 10_000}, 6))
    assert len(found.carry_over) == 1
    assert carry_over_texts(found.carry_over[0])[-1].startswith(("No carry-over", "Carry-over"))
    assert answered([]).groups == []


def test_the_second_never_does_more_than_the_first() -> None:
    # b is 2 % better than a where both played; where a is missing, the machine is slow, and b is
    # poor relative to c.
    made = run({"a": 10_000, "b": 10_200, "c": 5_000}, 4, deviation=0.001)
    made += run({"b": 9_000, "c": 8_100}, 4, deviation=0.001, first=4)
    question = asked(made)[0]
    own = {of.cell.client: of.own for of in rank(read_sittings(made), question.cells, RATE)[0]}
    assert own["a"] > own["b"], "the means and the pair agree, so this shows nothing"
    ranking = answers(made, [question], StopRule(), final=True).groups[0].ranking("rate")
    assert ranking is not None
    assert [place.name for place in ranking.places[:2]] == ["b", "a"]


@pytest.mark.parametrize("seed", range(20))
def test_whichever_outcomes_are_missing_the_lead_is_one(seed: int) -> None:
    draw = random.Random(seed)
    whole = run({"a": 10_000, "b": 10_100, "c": 10_050, "d": 9_900}, 5, deviation=0.1)
    made = [outcome for outcome in whole if draw.random() < 0.6]
    for group in answers(made, asked(made), StopRule(), final=True).groups:
        for ranking in group.rankings:
            lead = ranking.lead
            if lead is None or lead.ratio is None:
                continue
            assert (lead.first, lead.second) == tuple(p.cell for p in ranking.places[:2])
            assert lead.ratio.value >= 1 if ranking.more_is_better else lead.ratio.value <= 1
