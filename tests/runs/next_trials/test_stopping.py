"""Which cells are still played: looks, retired cells, the time limit."""

import random
from typing import Any

import msgspec
import pytest

from cachemark.analysis.rounds.questions import asked
from cachemark.model.experiment import Experiment, RoundsTiming
from cachemark.model.experiment_file import parse
from cachemark.model.outcome import Outcome
from cachemark.model.plan import Plan, Trial, make_plan
from cachemark.model.rounds import Rounds, Slices
from cachemark.runs.next_trials.stopping import Stopping, shared_cells
from tests.builders.outcomes import measured

TEXT = """
name = "x"
question = "q"
design = "rounds"
clients = ["a", "b", "c"]
servers = ["embedded"]
twice = "a"
blocks = 12
[[workloads]]
name = "mixed"
mix = { get = 1 }
[[loads]]
name = "one"
"""


def experiment(**rounds: Any) -> Experiment:
    found = parse(TEXT, "x.toml")
    return msgspec.structs.replace(found, rounds=RoundsTiming(**rounds))


def played(plan: Plan, blocks: int, rates: dict[str, float]) -> list[Outcome]:
    """Outcomes of the first blocks: each client's rate with a deviation of 1 % between sittings."""
    noise = random.Random(1)
    return [
        outcome_of(trial.block, trial.cell.client, rates, noise)
        for sitting in plan.sittings[:blocks]
        for trial in sitting.trials
    ]


def outcome_of(block: int, client: str, rates: dict[str, float], noise: random.Random) -> Outcome:
    ops = round(rates[client.partition("#")[0]] * noise.gauss(1, 0.01))
    made = measured(client, block, ops)
    slices = Slices(
        square=[0, 0], row=[0, 1], position=[0, 0], predecessor=[0, 0], began_ns=[0, 1],
        wall_ns=[10**9] * 2, ops=[ops] * 2, errors=[0] * 2, lead_in_ops=[0] * 2,
        elapsed_ns=[10**9] * 2, worker_cpu_ns=[1] * 2, server_cpu_ns=[1] * 2, idle_cpu_ns=[0] * 2,
        steal_ns=[0] * 2,
    )  # fmt: skip
    trial = msgspec.structs.replace(made.trial, sitting=block)
    rounds = Rounds(arms=["a"], arm=0, length_us=1, lead_in_us=0, slices=slices)
    return msgspec.structs.replace(made, trial=trial, rounds=rounds)


def clients(sets: list[list[Trial]]) -> set[str]:
    return {trial.cell.client for part in sets for trial in part}


CASES = [
    ("all differ, so the run ends", {"a": 1e4, "b": 2e4, "c": 4e4}, set()),
    ("one is far off and leaves", {"a": 10_000, "b": 10_350, "c": 4e4}, {"a", "a#again", "b"}),
]


@pytest.mark.parametrize(("rates", "left"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_after_a_look_only_open_cells_are_played(rates: dict[str, float], left: set[str]) -> None:
    plan = make_plan(experiment())
    outcomes = played(plan, 6, rates)
    stopping = Stopping(plan, 0.0)
    assert clients(stopping.next_sets(plan.sittings[5], outcomes, 1.0)) == {
        "a",
        "a#again",
        "b",
        "c",
    }
    assert clients(stopping.next_sets(plan.sittings[6], outcomes, 1.0)) == left


@pytest.mark.slow("computes the answers of a large group at every look")
def test_the_first_two_play_on_until_the_leader_is_known() -> None:
    names = list("abcdefghi")
    rates = {name: 1e4 * 1.2**at for at, name in enumerate(names)}
    rates["h"] = rates["i"] * 0.955
    plan = make_plan(msgspec.structs.replace(experiment(), clients=names, servers=["embedded"]))
    of_six = [sitting for sitting in plan.sittings if sitting.block < 6]
    noise = random.Random(2)
    outcomes = [
        msgspec.structs.replace(made, trial=trial)
        for sitting in of_six
        for trial in sitting.trials
        for made in [outcome_of(trial.block, trial.cell.client, rates, noise)]
    ]
    stopping = Stopping(plan, 0.0)
    left = set[str]()
    for sitting in (sitting for sitting in plan.sittings if sitting.block == 6):
        left |= clients(stopping.next_sets(sitting, outcomes, 1.0))
    assert {"h", "i"} <= left
    # a and b are the references of both sets.
    assert not left & set("cdefg")


@pytest.mark.slow("computes the answers of a large group at every look")
def test_references_stay_for_open_sets_but_keep_no_set() -> None:
    names = ["a", *(f"c{number}" for number in range(12))]
    rates = {name: 1e4 * 1.2**at for at, name in enumerate(names)}
    # c10 and c11 are in the last set, and it is open which of them is first.
    rates["c10"] = rates["c11"] * 0.955
    plan = make_plan(msgspec.structs.replace(experiment(), clients=names))
    noise = random.Random(1)
    outcomes = [
        outcome_of(trial.block, trial.cell.client, rates, noise)
        for sitting in plan.sittings
        if sitting.block < 6
        for trial in sitting.trials
    ]
    assert {cell.client for cell in shared_cells(plan)} == {"a", "c0"}
    stopping = Stopping(plan, 0.0)
    kept = [
        names
        for sitting in plan.sittings
        if sitting.block == 6 and (names := clients(stopping.next_sets(sitting, outcomes, 1.0)))
    ]
    assert kept == [{"a", "a#again", "c0", "c10", "c11"}]


def test_a_fixed_number_of_sittings_is_played_whatever_they_show() -> None:
    plan = make_plan(experiment(until="fixed"))
    outcomes = played(plan, 9, {"a": 1e4, "b": 2e4, "c": 4e4})
    assert len(clients(Stopping(plan, 0.0).next_sets(plan.sittings[9], outcomes, 1.0))) == 4


def test_no_sitting_begins_that_would_end_too_late() -> None:
    plan = make_plan(experiment(max_s=100))
    stopping = Stopping(plan, 0.0)
    assert stopping.next_sets(plan.sittings[0], [], 1000.0)
    stopping = Stopping(plan, 0.0)
    assert stopping.next_sets(plan.sittings[0], [], 0.0)
    assert stopping.next_sets(plan.sittings[1], [], 40.0)
    assert stopping.next_sets(plan.sittings[2], [], 60.0)
    assert not stopping.next_sets(plan.sittings[3], [], 80.0)


TWO_LOADS = """[[loads]]
name = "two"
threads = 2
"""


def test_a_block_is_played_whole_or_not_at_all() -> None:
    whole = parse(TEXT + TWO_LOADS, "x.toml")
    plan = make_plan(msgspec.structs.replace(whole, rounds=RoundsTiming(max_s=100)))
    assert [sitting.block for sitting in plan.sittings[:4]] == [0, 0, 1, 1]
    stopping = Stopping(plan, 0.0)
    for number, now_s in enumerate((0.0, 20.0, 40.0, 85.0)):
        # Two more sittings of 20 s end at 80 s; that one of them takes longer does not matter.
        assert stopping.next_sets(plan.sittings[number], [], now_s)
    assert not stopping.next_sets(plan.sittings[4], [], 90.0)
    assert not stopping.next_sets(plan.sittings[5], [], 90.0)
    # Only of the first block, a part is played.
    stopping = Stopping(plan, 0.0)
    assert stopping.next_sets(plan.sittings[0], [], 0.0)
    assert not stopping.next_sets(plan.sittings[1], [], 60.0)


def test_a_resumed_run_has_used_its_sittings_time() -> None:
    plan = make_plan(experiment(max_s=100))
    before = [
        msgspec.structs.replace(one, wall_ms=30_000)
        for one in played(plan, 2, {"a": 1e4, "b": 2e4, "c": 4e4})
    ]
    assert Stopping(plan, 5000.0, before).next_sets(plan.sittings[2], before, 5005.0)
    assert not Stopping(plan, 5000.0, before).next_sets(plan.sittings[2], before, 5008.0)


def test_the_loop_without_a_library_is_never_ranked() -> None:
    small = msgspec.structs.replace(
        experiment(), in_process=["ruby/memory_store", "ruby/null", "ruby/other"]
    )
    questions = asked(small, make_plan(small).cells)
    ranked = [{cell.client for cell in question.cells} for question in questions]
    assert ranked == [{"a", "b", "c"}, {"ruby/memory_store", "ruby/other"}]
