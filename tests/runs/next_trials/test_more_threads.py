"""A search whose own client is the limit goes on with more threads, where it can."""

import msgspec
import pytest

from cachemark.analysis.rate_search import bounds, searches
from cachemark.cli.play import exit_status
from cachemark.model.experiment import Experiment, Load, Measure
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import make_plan
from cachemark.model.search_steps import Base, base_of, wider_load
from cachemark.runs.next_trials.schedule import RateStep, RateSteps, more_threads
from cachemark.runs.storage.run_limits import check_run
from tests.builders.outcomes import header
from tests.builders.search_outcomes import LOAD, at_rate, closed, search_experiment

# A thread of the client is late above this rate, and the server is slow above the other.
EACH_THREAD, SERVER = 600, 1300
CELL = Cell(client="native", server="embedded", workload="mixed", load="open")


def one_client(client: str) -> Experiment:
    return msgspec.structs.replace(search_experiment("p50<1ms", blocks=2), clients=[client])


def played(step: RateStep, index: int, experiment: Experiment) -> Outcome:
    client, block, rate = step.cell.client, step.first.block, step.load.rate
    base = base_of(experiment, step.load)
    assert base is not None
    if rate is None:
        made = closed(client, 2000 * base.load.threads, block, load=base.load)
    elif rate > EACH_THREAD * base.load.threads:
        made = at_rate(client, rate, 2_000_000, block, late_ns=1_900_000, load=base.load)
    else:
        time_ns = 2_000_000 if rate > SERVER else 100_000
        made = at_rate(client, rate, time_ns, block, load=base.load)
    assert made.trial.cell == step.cell
    return msgspec.structs.replace(made, trial=msgspec.structs.replace(made.trial, index=index))


def whole_run(experiment: Experiment, cpus: int, already: list[Outcome]) -> list[Outcome]:
    steps, outcomes = RateSteps(make_plan(experiment), cpus), list(already)
    while todo := steps.next_steps(outcomes):
        for step in todo:
            outcomes.append(played(step, len(outcomes), experiment))
    return outcomes


def test_a_search_limited_by_its_client_tries_all_cpus() -> None:
    experiment = one_client("native")
    outcomes = whole_run(experiment, 4, [])
    found = searches(outcomes, experiment)
    assert [(one.block, one.cell.load, one.threads) for one in found] == [
        (0, "open", 0), (0, "open-4-threads", 4), (1, "open", 0), (1, "open-4-threads", 4),
    ]  # fmt: skip
    first, wide = found[:2]
    assert wide.after == first.cell
    assert bounds(first).best <= EACH_THREAD < bounds(wide).best <= SERVER < bounds(wide).above
    assert all(
        outcome.load.threads == 4 for outcome in outcomes if "4-threads" in outcome.load.name
    )
    check_run(header(experiment), outcomes)


def test_a_search_that_goes_on_keeps_its_number_of_threads() -> None:
    experiment = one_client("native")
    whole = whole_run(experiment, 4, [])
    begun = next(n for n, outcome in enumerate(whole) if outcome.load.threads == 4) + 1
    again = whole_run(experiment, 16, whole[:begun])
    block = [outcome for outcome in whole if outcome.trial.block == 0]
    assert again[: len(block)] == block


@pytest.mark.parametrize(("client", "cpus"), [("native", 1), ("python/pymemcache", 8)])
def test_without_more_threads_to_try_the_search_has_ended(client: str, cpus: int) -> None:
    outcomes = whole_run(one_client(client), cpus, [])
    assert {outcome.load.threads for outcome in outcomes} == {1}


def test_a_rate_that_only_more_threads_met_counts_as_found() -> None:
    experiment = msgspec.structs.replace(one_client("native"), blocks=1)
    late = [
        at_rate("native", rate, 2_000_000, late_ns=1_900_000)
        for rate in (1000, 500, 250, 125, 62.5, 31.2)
    ]
    none = [closed("native", 2000), *late]
    assert exit_status(none, experiment) == 1
    wide = wider_load(LOAD, 4)
    more = [closed("native", 2000, load=wide), at_rate("native", 1000, 100_000, load=wide)]
    assert exit_status([*none, *more], experiment) == 0


@pytest.mark.parametrize(
    ("load", "cpus", "threads"),
    [
        (Load(name="open"), 4, 4),
        (Load(name="open", threads=2), 4, 4),
        (Load(name="open", threads=4), 4, 0),
        (Load(name="open", threads=16), 4, 0),
        (Load(name="open", processes=2), 4, 2),
        (Load(name="open", connections=6), 4, 3),
        (Load(name="open", connections=2), 4, 2),
        (Load(name="open", measure=Measure()), 4, 0),
    ],
)
def test_threads_are_as_many_as_cpus_in_equal_parts(load: Load, cpus: int, threads: int) -> None:
    experiment = msgspec.structs.replace(one_client("native"), loads=[load])
    assert more_threads(experiment, CELL, load, cpus) == threads


def test_an_experiment_that_compares_threads_plays_no_others() -> None:
    loads = [Load(name="a"), Load(name="b", threads=2)]
    experiment = msgspec.structs.replace(one_client("native"), loads=loads)
    assert more_threads(experiment, CELL, loads[0], 4) == 0


def test_a_step_with_more_threads_belongs_to_its_load() -> None:
    experiment, wide = one_client("native"), wider_load(LOAD, 4)
    outcome = at_rate("native", 1000, 100_000, load=wide)
    assert base_of(experiment, outcome.load) == Base(wide, LOAD)
    renamed = msgspec.structs.replace(outcome.load, name="open-1000-rate")
    assert base_of(experiment, renamed) is None
