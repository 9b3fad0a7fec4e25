"""How long a plan takes, and the looks that a time limit has no room for."""

from __future__ import annotations

import msgspec
import pytest

from cachemark.host import process
from cachemark.model import suites
from cachemark.model.errors import UsageError
from cachemark.model.experiment import RoundsTiming
from cachemark.model.experiment_file import parse
from cachemark.model.plan import Plan, make_plan
from cachemark.model.presets import expand
from cachemark.runs.next_trials.questions import check_looks
from cachemark.runs.planning.planned_time import block_slices_s, planned_s

TEXT = """
name = "x"
question = "q"
clients = ["a", "b", "c", "d"]
servers = ["embedded"]
blocks = 12
timing = { warmup_ms = 1000, measure_ms = 1200 }
[[workloads]]
name = "mixed"
mix = { get = 1 }
[[loads]]
name = "one"
"""


def plan_of(design: str = "rounds", **rounds: object) -> Plan:
    found = parse(TEXT, "x.toml")
    timing = RoundsTiming(slice_ms=100, **rounds)
    return make_plan(msgspec.structs.replace(found, design=design, rounds=timing))


def test_slices_are_counted_in_whole_squares_with_the_one_before_each_row() -> None:
    # Four arms: squares of 4 rows, each with 4 slices and the one before them; 3 squares.
    assert block_slices_s(plan_of()) == pytest.approx(3 * 4 * 5 * 0.1)


def test_a_longer_plan_takes_longer_up_to_its_limit() -> None:
    whole = planned_s(plan_of())
    assert whole > 12 * (block_slices_s(plan_of()) + 4 * 1.0)
    assert planned_s(plan_of(max_s=60)) == 60
    assert planned_s(plan_of("trials")) > 12 * 4 * (1.0 + 1.2)


def test_a_limit_without_room_for_the_first_look_is_refused() -> None:
    with pytest.raises(UsageError, match="after 6 sittings, whose slices alone take 36 s") as found:
        check_looks(plan_of(max_s=35))
    assert "--until fixed" in found.value.remedy
    check_looks(plan_of(max_s=36))
    check_looks(plan_of(max_s=35, until="fixed"))
    check_looks(plan_of("trials", max_s=1))


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", suites.names())
def test_every_suite_has_time_for_its_first_look(name: str, *, quick: bool) -> None:
    try:
        found = suites.find(name, quick=quick)
    except UsageError:
        assert (name, quick) == ("quick", True)
        return
    check_looks(make_plan(expand(found, process.binary_path())))


@pytest.mark.parametrize("name", [name for name in suites.names() if name != "quick"])
def test_the_small_grid_of_every_suite_is_planned_for_five_minutes_at_most(name: str) -> None:
    plan = make_plan(expand(suites.find(name, quick=True), process.binary_path()))
    assert planned_s(plan) <= 300
