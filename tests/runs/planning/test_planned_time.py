"""How long a plan takes, and the looks that a time limit has no room for."""

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from cachemark.host import process
from cachemark.model import suites
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Keys, Load, RoundsTiming, Timing, Values, Workload
from cachemark.model.experiment_file import parse
from cachemark.model.outcome import Outcome
from cachemark.model.plan import Plan, make_plan
from cachemark.model.presets import expand
from cachemark.model.tape_facts import TapeFacts
from cachemark.runs.next_trials.schedule import trials_left
from cachemark.runs.planning.plan_text import busy_note, extent
from cachemark.runs.planning.planned_time import (
    block_s,
    check_looks,
    counted_time,
    left_s,
    planned_s,
    sitting_time,
)
from cachemark.runs.sittings.order import random_square, squares_for, turns
from cachemark.runs.sittings.warm_up import USUAL_ROUNDS
from tests.builders.outcomes import measured

TEXT = """
name = "x"
question = "q"
clients = ["a"]
servers = ["embedded"]
blocks = 12
timing = { warmup_ms = 1000, measure_ms = 1200 }
[[workloads]]
name = "mixed"
mix = { get = 1 }
[[loads]]
name = "one"
"""


def plan_of(
    design: str = "rounds",
    *,
    clients: Sequence[str] = ("a", "b", "c", "d"),
    keys: int = 1000,
    ops: int | None = None,
    prefill: float = 1.0,
    threads: int = 1,
    depth: int = 1,
    in_process: bool = False,
    **rounds: Any,
) -> Plan:
    found = parse(TEXT, "x.toml")
    (workload,), (load,) = found.workloads, found.loads
    replace = msgspec.structs.replace
    workload = replace(workload, keys=Keys(count=keys), ops=ops, prefill=prefill)
    names = {"in_process" if in_process else "clients": list(clients)}
    return make_plan(
        replace(
            found,
            **{"clients": [], **names},
            design=design,
            workloads=[workload],
            loads=[replace(load, threads=threads, depth=depth)],
            rounds=RoundsTiming(**{"slice_ms": 100, **rounds}),
        )
    )


def slices_s(plan: Plan) -> float:
    return sitting_time(plan, plan.sittings[0].sets, cpus=2).slices_s


def warm_up_s(plan: Plan) -> float:
    return sitting_time(plan, plan.sittings[0].sets, cpus=2).warm_up_s


def starts_s(plan: Plan, cpus: int = 2) -> float:
    return sitting_time(plan, plan.sittings[0].sets, cpus).starts_s


def test_slices_are_counted_in_squares_with_each_rows_extra_one() -> None:
    # Four arms: squares of 4 rows, each with 4 slices and the one before them; 3 squares.
    assert slices_s(plan_of()) == pytest.approx(3 * 4 * 5 * 0.1, rel=0.05)


def test_the_squares_of_a_sitting_are_those_that_it_plays() -> None:
    """The turns that the order of play has, for sets of every size, short slices and long ones."""
    for arms in range(2, 9):
        for slice_ms in (5, 30, 200, 500):
            made = plan_of(slice_ms=slice_ms, clients=[f"c{number}" for number in range(arms)])
            (part,) = made.sittings[0].sets
            squares = squares_for(1200, slice_ms, arms)
            order = random.Random(1)
            played = sum(
                len(list(turns(number, random_square(order, range(arms)))))
                for number in range(squares)
            )
            assert len(part) == arms
            # A turn takes up to 1.5 ms longer than its slice.
            least_s = played * slice_ms / 1e3
            assert least_s < slices_s(made) < least_s + played * 1.5e-3


def test_long_slices_take_longer_than_requested() -> None:
    # A square of 4 arms has 4 rows: 16 slices and the 4 before the rows, however long they are.
    usual, long = plan_of(slice_ms=30), plan_of(slice_ms=500)
    assert slices_s(usual) == pytest.approx(10 * 20 * 0.03, rel=0.05)
    assert slices_s(long) == pytest.approx(20 * 0.5, rel=0.05)


def test_the_warm_up_ends_by_rounds_within_its_time() -> None:
    # 1000 ms of warm-up: with slices of 30 ms usually less, with longer ones all of it.
    assert warm_up_s(plan_of(slice_ms=30)) == pytest.approx(4 * USUAL_ROUNDS * 0.03, rel=0.05)
    assert warm_up_s(plan_of(slice_ms=200)) == pytest.approx(4 * 1.0, rel=0.05)
    assert warm_up_s(plan_of(slice_ms=300)) == pytest.approx(4 * 4 * 0.3, rel=0.05)


def test_slices_last_until_the_operations_that_began_in_them_end() -> None:
    one, many = plan_of(slice_ms=30), plan_of(slice_ms=30, threads=32, depth=8)
    assert slices_s(many) > 1.5 * slices_s(one)
    assert slices_s(plan_of(slice_ms=500, threads=32, depth=8)) < 1.1 * slices_s(
        plan_of(slice_ms=500)
    )


def test_starts_cost_what_the_language_costs_and_share_the_cpus() -> None:
    compiled = plan_of(clients=["c/libmemcached", "rust/memcache"])
    virtual_machines = plan_of(clients=["java/folsom", "java/xmemcached"])
    assert starts_s(virtual_machines) > starts_s(compiled) + 2
    assert starts_s(virtual_machines, cpus=4) == pytest.approx(starts_s(virtual_machines) / 2)
    assert starts_s(virtual_machines, cpus=64) == pytest.approx(starts_s(virtual_machines) / 2)
    assert starts_s(virtual_machines, cpus=1) == starts_s(virtual_machines)


def test_each_key_is_stored_in_a_round_trip() -> None:
    near = plan_of("trials", clients=["a"], threads=2)
    (distant,) = {trial.cell.server for trial in near.trials}
    far = msgspec.structs.replace(
        near,
        trials=[
            msgspec.structs.replace(
                trial, cell=msgspec.structs.replace(trial.cell, server=f"distant:10ms:{distant}")
            )
            for trial in near.trials
        ],
    )
    more_s = (planned_s(far, 2) - planned_s(near, 2)) / len(near.trials)
    assert more_s == pytest.approx(1000 * 0.010 / 2, rel=1e-6)


def test_many_keys_take_time_to_store() -> None:
    few, many = plan_of(keys=1000), plan_of(keys=101_000)
    stored_s = 4 * 100_000 / 8_000
    assert stored_s < starts_s(many) - starts_s(few) < 1.05 * stored_s


def test_a_plan_is_its_sittings_sum_up_to_a_limit() -> None:
    made = plan_of()
    one = sum(sitting_time(made, made.sittings[0].sets, cpus=2))
    assert 12 * one < planned_s(made, 2) < 13 * one
    assert 60 < planned_s(plan_of(max_s=60), 2) < 70


def test_trials_take_their_warm_up_window_and_start() -> None:
    alone = planned_s(plan_of("trials"), 2)
    assert alone > 12 * 4 * (1.0 + 1.2)
    workload = {"ops": 80_000, "prefill": 0.0}
    counted = planned_s(plan_of("trials", **workload), 2)
    assert counted > 12 * 4 * (1.0 + 10.0)
    in_process = planned_s(plan_of("trials", in_process=True, **workload), 2)
    assert in_process < counted / 3


def workload_time(server: str = "memcached", **settings: Any) -> float:
    """The time of one trial of a workload, in seconds."""
    found = parse(TEXT, "x.toml")
    given: dict[str, Any] = {"name": "mixed", "prefill": 0.0, **settings}
    experiment = msgspec.structs.replace(
        found,
        design="trials",
        blocks=1,
        servers=[server],
        workloads=[Workload(**given)],
        timing=Timing(warmup_ms=0, measure_ms=1000),
    )
    return planned_s(make_plan(experiment), 2)


FILL: dict[str, Any] = {
    "sequence": ["mset_noreply@0-99", "get@99"],
    "values": Values(size="100..1000"),
    "records": 32_000,
    "fill_percent": 80.0,
}


def test_a_fill_takes_what_the_memory_of_the_server_needs() -> None:
    """Not the length of a timed window, and no more than its tape."""
    small, large = (
        workload_time("memcached:memory=64", **FILL),
        workload_time("memcached:memory=512", **FILL),
    )
    start_s = workload_time(mix={"get": 1}) - 1
    assert large - start_s == pytest.approx(8 * (small - start_s), rel=0.3)
    # 80 % of 512 MiB are 600,000 items.
    assert 6_000 * 10.9 / 8_000 < large < 9_000 * 10.9 / 8_000
    assert workload_time("memcached:memory=8g", **FILL) == pytest.approx(
        workload_time("command:x {port}", **FILL)
    )
    half = workload_time("memcached:memory=512", **{**FILL, "fill_percent": 40.0})
    assert half < 0.6 * large


def test_a_batch_costs_by_its_keys_whatever_names_them() -> None:
    one = workload_time(mix={"get": 1}, ops=80_000)
    named = workload_time(sequence=["mget@0-5"], ops=80_000)
    assert named == pytest.approx(workload_time(mix={"mget": 1}, run=6, ops=80_000))
    assert named - one == pytest.approx(10 * 0.5, rel=0.05)
    quiet = workload_time(sequence=["mset_noreply@0-99"], ops=80_000)
    assert quiet == pytest.approx(workload_time(mix={"mset_noreply": 1}, run=100, ops=80_000))
    assert quiet > 100


def test_operations_cost_by_their_kinds_and_weights() -> None:
    quiet = workload_time(mix={"set_noreply": 1}, ops=80_000)
    both = workload_time(mix={"set_noreply": 1, "get": 1}, ops=80_000)
    mostly = workload_time(mix={"set_noreply": 9, "get": 1}, ops=80_000)
    assert quiet < mostly < both < workload_time(mix={"get": 1}, ops=80_000)


def test_passes_of_a_tape_end_the_window() -> None:
    once = workload_time(mix={"get": 1}, records=80_000, passes=1)
    assert once == pytest.approx(workload_time(mix={"get": 1}, ops=80_000))
    assert workload_time(mix={"get": 1}, records=80_000, passes=3) > once + 19


def test_servers_in_a_jvm_take_longer_to_start() -> None:
    usual = workload_time(mix={"get": 1})
    one = workload_time("quickcached:cache=Whirlycott", mix={"get": 1})
    assert one > usual + 0.5
    cluster = workload_time("cluster:3:quickcached:cache=Whirlycott", mix={"get": 1})
    assert cluster - usual == pytest.approx(3 * (one - usual))
    # Its server is started once, however many workers come before those that are measured.
    warmed = workload_time("quickcached", mix={"get": 1}, server_warmup_ops=600)
    assert warmed - one < one - usual


def test_a_plan_says_that_the_machine_is_busy() -> None:
    assert busy_note(2.9, cpus=2) == ""
    assert "load average 24" in busy_note(24.2, cpus=2)


def test_a_limit_without_room_for_the_first_look_is_refused() -> None:
    needed_s = 6 * block_s(plan_of(), 2)
    assert needed_s == pytest.approx(planned_s(plan_of(), 2) / 2, rel=0.1)
    with pytest.raises(UsageError, match=f"6 sittings, which take about {needed_s:.0f} s") as found:
        check_looks(plan_of(max_s=round(0.7 * needed_s)), 2)
    assert "--set rounds.until=fixed" in found.value.remedy
    # The plan is an estimate: what may do is not refused.
    check_looks(plan_of(max_s=round(0.8 * needed_s)), 2)
    check_looks(plan_of(max_s=10, until="fixed"), 2)
    check_looks(plan_of("trials", max_s=1), 2)


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", suites.names())
def test_every_suite_has_time_for_its_first_look(name: str, *, quick: bool) -> None:
    try:
        found = suites.find(name, quick=quick)
    except UsageError:
        assert (name, quick) == ("quick", True)
        return
    check_looks(make_plan(expand(found, process.binary_path())), cpus=2)


@pytest.mark.parametrize("name", [name for name in suites.names() if name != "quick"])
def test_every_suites_small_grid_is_planned_within_five_minutes(name: str) -> None:
    plan = make_plan(expand(suites.find(name, quick=True), process.binary_path()))
    assert planned_s(plan, cpus=2) <= 300


def plan_of_trace(schedule: str = "closed", *, clients: Sequence[str] = ("a", "b")) -> Plan:
    found = parse(TEXT, "x.toml")
    workload = Workload(name="trace", trace="day.csv", passes=1, prefill=0.0, warmup_ms=0)
    return make_plan(
        msgspec.structs.replace(
            found,
            clients=list(clients),
            design="trials",
            blocks=4,
            workloads=[workload],
            loads=[Load(name="one", schedule=schedule)],
        )
    )


TRACE_OPS = 800_000
TAPES = {
    ("trace", "one"): TapeFacts(
        seed=1, sha256="", ops=TRACE_OPS, keys=9, period_ns=60_000_000_000, arguments=[]
    )
}


def test_a_paced_trace_is_planned_by_its_own_time() -> None:
    plan = plan_of_trace("replay")
    assert planned_s(plan, 2, TAPES) == pytest.approx(8 * 60, rel=0.05)
    assert "ops/s" not in extent(plan, TAPES)


def test_a_closed_trace_is_planned_by_a_named_rate() -> None:
    plan = plan_of_trace()
    assert counted_time(plan, TAPES) == (8 * TRACE_OPS, 8 * TRACE_OPS / 8_000)
    assert "at 8.00 k ops/s (the first trials tell the rate" in extent(plan, TAPES)


def test_windows_of_a_given_time_name_no_rate() -> None:
    assert counted_time(plan_of("trials")) == (0, 0)
    assert "ops/s" not in extent(plan_of("trials"))


def walls_s(rates: dict[str, float], plan: Plan) -> list[Outcome]:
    """The outcomes of a plan, in its order, for clients that have these rates."""
    return [
        msgspec.structs.replace(
            measured(trial.cell.client, trial.block, 1, index=trial.index),
            trial=trial,
            wall_ms=round(300 + TRACE_OPS / rates[trial.cell.client] * 1e3),
        )
        for trial in plan.trials
    ]


@pytest.mark.parametrize("rate", [2_000, 8_000, 90_000])
def test_a_closed_traces_first_trial_gives_the_time_left(rate: float) -> None:
    plan = plan_of_trace(clients=["a"])
    outcomes = walls_s({"a": rate}, plan)
    assert left_s(plan, TAPES, plan.trials, []) is None
    for played in (1, 2, 3):
        left = trials_left(plan, outcomes[:played])
        truth = sum(one.wall_ms for one in outcomes[played:]) / 1e3
        assert left_s(plan, TAPES, left, outcomes[:played]) == pytest.approx(truth, rel=0.05)
    assert left_s(plan, TAPES, [], outcomes) is None


def test_clients_of_other_rates_are_told_apart_after_a_block() -> None:
    plan = plan_of_trace(clients=["a", "b"])
    outcomes = walls_s({"a": 90_000, "b": 6_000}, plan)
    for played in range(2, 8):
        left = trials_left(plan, outcomes[:played])
        truth = sum(one.wall_ms for one in outcomes[played:]) / 1e3
        assert left_s(plan, TAPES, left, outcomes[:played]) == pytest.approx(truth, rel=0.05)
