"""The second half of slices relative to the first: what turns do to a client."""

import random

import msgspec
import pytest

from cachemark.analysis.rounds.answers import answers
from cachemark.analysis.rounds.halves import (
    SliceHalves,
    error_of_turns,
    logs_of_halves,
    slice_halves,
)
from cachemark.analysis.rounds.looks import StopRule
from cachemark.analysis.rounds.pairs import read_sittings
from cachemark.analysis.rounds.questions import questions_of
from cachemark.analysis.rounds.texts import halves_texts
from cachemark.analysis.statistics import Interval
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.rounds import Slices
from cachemark.report.rounds import run_answers, sentences
from tests.builders import rounds as made
from tests.builders.outcomes import experiment

RATES = {"steady": 20_000.0, "slow to start": 20_000.0}


def with_halves(slices: Slices, ratio: float, draw: random.Random) -> Slices:
    """Slices whose second half has a multiple of the first half's rate, with some noise."""
    half_ns = [ns // 2 for ns in slices.elapsed_ns]
    half_ops = [
        round(ops / (1 + ratio * draw.lognormvariate(0, 0.05))) for ops in slices.ops
    ]  # fmt: skip
    return msgspec.structs.replace(slices, half_ops=half_ops, half_ns=half_ns)


def played(ratio: float, *, sittings: int = 8, seed: int = 5, lead: float = 1.0) -> list[Outcome]:
    """Two clients; the second half of the second client's slices has a multiple of the rate."""
    draw = random.Random(seed)
    found: list[Outcome] = []
    rates = {client: rate * lead ** (client != "steady") for client, rate in RATES.items()}
    for outcome in made.run(rates, sittings):
        assert outcome.rounds
        own = ratio if outcome.trial.cell.client == "slow to start" else 1.0
        slices = with_halves(outcome.rounds.slices, own, draw)
        rounds = msgspec.structs.replace(outcome.rounds, slices=slices)
        found.append(msgspec.structs.replace(outcome, rounds=rounds))
    return found


def halves_of(outcomes: list[Outcome]) -> dict[str, SliceHalves]:
    return {of.cell.client: of for of in slice_halves(read_sittings(outcomes))}


def test_a_client_that_is_slow_to_start_is_named() -> None:
    halves = halves_of(played(1.05))
    assert halves["slow to start"].ratio.value == pytest.approx(1.05, rel=0.01)
    assert halves["slow to start"].differ
    assert not halves["steady"].differ


def test_a_client_that_slows_down_within_slices_is_named_too() -> None:
    assert halves_of(played(1 / 1.05))["slow to start"].differ


def test_halves_within_2_percent_are_shown_without_a_warning() -> None:
    of = halves_of(played(1.01))["slow to start"]
    assert of.ratio.value != 1
    assert not of.differ


def test_equal_halves_are_seldom_said_to_differ() -> None:
    # A deviation of 20 % a slice: by chance, many means are beyond 2 %.
    named = 0
    for seed in range(100):
        draw = random.Random(seed)
        outcomes = [
            msgspec.structs.replace(
                of,
                rounds=msgspec.structs.replace(
                    of.rounds,
                    slices=with_halves(of.rounds.slices, draw.lognormvariate(0, 0.05), draw),
                ),
            )
            for of in played(1.0, seed=seed)
            if of.rounds
        ]
        named += any(of.differ for of in halves_of(outcomes).values())
    assert named <= 12  # 5 % of 100, and two and a half deviations


def test_turns_may_move_ratios_by_twice_their_change_within_slices() -> None:
    halves = logs_of_halves(read_sittings(played(1.05)))
    steady, slow = halves
    assert 1.05**2 < error_of_turns(halves, steady, slow) < 1.1**2
    assert error_of_turns(halves, slow, steady) == pytest.approx(
        error_of_turns(halves, steady, slow)
    )
    # What turns do to both alike moves no ratio.
    assert error_of_turns(halves, slow, slow) == 1
    assert error_of_turns({}, steady, slow) == 1
    few = logs_of_halves(read_sittings(played(1.5, sittings=3)))
    assert error_of_turns(few, steady, slow) == 1


def test_clients_that_never_met_have_an_error_of_turns_too() -> None:
    halves = logs_of_halves(read_sittings(played(1.05)))
    steady, slow = halves
    apart = {
        cell: {key: log for key, log in logs.items() if (key.block < 4) == (cell == steady)}
        for cell, logs in halves.items()
    }
    assert 1.05**2 < error_of_turns(apart, steady, slow) < 1.3


@pytest.mark.parametrize("ratio", [1.0, 1.06, 1 / 1.06])
def test_a_lead_that_turns_may_have_made_is_no_answer(ratio: float) -> None:
    outcomes = played(ratio, lead=1.08)
    questions = questions_of(list(dict.fromkeys(of.trial.cell for of in outcomes)))
    rule = StopRule(looks=(), planned=8)
    found = answers(outcomes, questions, rule, final=True)
    (ranking,) = [of for of in found.groups[0].rankings if of.figure == "rate"]
    assert ranking.lead is not None
    assert ranking.lead.answer == ("better" if ratio == 1.0 else "open")
    assert {of.answer for of in ranking.pairs} <= {"worse" if ratio == 1.0 else "open"}
    text = "\n".join(sentences(found, outcomes))
    assert ("are within the instrument's own error" in text) == (ratio != 1.0)
    cpu = next(of for of in found.groups[0].rankings if of.figure == "client-cpu")
    assert {of.bound for of in cpu.pairs} == {1.0}


def test_a_single_sitting_has_a_ratio_without_an_answer() -> None:
    of = halves_of(played(1.5, sittings=1))["slow to start"]
    assert of.ratio.value == pytest.approx(1.5, rel=0.05)
    assert of.ratio.low is None
    assert not of.differ


def test_runs_of_workers_that_do_not_report_halves_have_none() -> None:
    assert slice_halves(read_sittings(made.run(RATES, 6))) == []


def test_loads_whose_last_operations_a_barrier_completes_have_none() -> None:
    quiet = [
        msgspec.structs.replace(of, measure=msgspec.structs.replace(of.measure, barriers=1))
        for of in played(1.5)
        if of.measure
    ]
    assert halves_of(quiet) == {}


def test_many_clients_are_told_in_one_sentence() -> None:
    """A page of warnings hides the answer."""
    some = [
        SliceHalves(
            cell=Cell(client=f"c{number}", server="s", workload="w", load="l"),
            sittings=8,
            ratio=Interval(value=value, low=value - 0.01, high=value + 0.01),
            p_holm=0.001,
        )
        for number, value in enumerate((0.94, 0.99, 0.91, 0.96))
    ]
    (text,) = halves_texts(some, may_sleep=True)
    assert text.startswith("3 clients change speed within their slices")
    assert text.index("(c2 on s)") < text.index("(c3 on s)")
    assert len(halves_texts(some[:2], may_sleep=True)) == 1
    (text,) = halves_texts(some[:1], may_sleep=False)
    assert text.startswith("A client changes speed within its slices: the second half has 0.940")
    assert halves_texts(some[1:2], may_sleep=True) == []


@pytest.mark.parametrize("awake", [False, True])
def test_cpus_that_slept_are_the_first_remedy(awake: bool) -> None:
    outcomes = [msgspec.structs.replace(of, awake=awake) for of in played(0.94)]
    lines = sentences(run_answers(experiment(list(RATES)), outcomes), outcomes)
    (text,) = [line for line in lines if "within its slices" in line]
    assert ("Sleeping CPUs" in text) == ("--set awake=true" in text) == (not awake)
    assert "rounds.slice_ms" in text
