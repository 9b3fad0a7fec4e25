"""Which trials a search plays next: the loop of a run, without processes."""

from __future__ import annotations

import msgspec

from cachemark.model.outcome import Outcome
from cachemark.model.plan import make_plan
from cachemark.runs.next_trials.schedule import RateStep, RateSteps
from tests.builders.search_outcomes import at_rate, closed, search_experiment

LIMITS = {"a": 700, "b": 1500}


def played(step: RateStep, index: int) -> Outcome:
    client, block = step.cell.client, step.first.block
    rate = step.load.rate
    slow = rate is not None and rate > LIMITS[client]
    made = (
        closed(client, 4000, block)
        if rate is None
        else at_rate(client, rate, 2_000_000 if slow else 100_000, block)
    )
    assert made.trial.cell == step.cell
    return msgspec.structs.replace(made, trial=msgspec.structs.replace(made.trial, index=index))


def whole_run(already: list[Outcome]) -> list[Outcome]:
    experiment = search_experiment("p50<1ms", blocks=2)
    steps = RateSteps(make_plan(experiment))
    outcomes = list(already)
    while todo := steps.next_steps(outcomes):
        for step in todo:
            outcomes.append(played(step, len(outcomes)))
    return outcomes


def test_each_search_begins_with_a_closed_loop_and_ends() -> None:
    outcomes = whole_run([])
    assert [o.load.rate for o in outcomes[:2]] == [None, None]
    assert [o.trial.block for o in outcomes] == sorted(o.trial.block for o in outcomes)
    assert {o.load.rate for o in outcomes if o.trial.cell.client == "a"} >= {2000, 1000, 500}


def test_all_cells_play_a_step_before_any_plays_its_next_one() -> None:
    first = [o for o in whole_run([]) if o.trial.block == 0]
    assert all(
        {first[at].trial.cell.client, first[at + 1].trial.cell.client} == {"a", "b"}
        for at in range(0, 10, 2)
    )


def test_a_run_that_goes_on_plays_what_an_unbroken_one_does() -> None:
    whole = whole_run([])
    for kept in (1, 5, len(whole) - 1, len(whole)):
        again = whole_run(whole[:kept])
        key = {(o.trial.block, o.trial.cell) for o in whole}
        assert {(o.trial.block, o.trial.cell) for o in again} == key
        assert len(again) == len(whole)
