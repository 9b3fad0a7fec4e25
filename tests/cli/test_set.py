"""`--set PATH=VALUE`: every setting of a file is reached, checked, and named in errors."""

from dataclasses import fields
from pathlib import Path

import pytest

from cachemark.cli.overrides import Overrides, planned_experiment
from cachemark.cli.program import app
from cachemark.cli.run_options import RunOptions
from cachemark.cli.set_option import ENGINE_PATHS, paths, typed_settings
from cachemark.cli.work_options import WorkOptions
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from tests.cli.in_process import Inside


def planned(*settings: str) -> Experiment:
    """The suite quick with these settings."""
    return planned_experiment("quick", RunOptions(client=("native",), set=settings).overrides())


def test_run_has_the_options_that_people_type() -> None:
    arguments = app["run"].assemble_argument_collection()
    typed = [argument for argument in arguments if argument.show and argument.name[:2] == "--"]
    assert len(typed) <= 29


def test_a_setting_is_changed_wherever_it_stands() -> None:
    made = planned("loads.threads=16", "loads.wire=meta", "workloads.keys.length=16..40")
    assert {(load.threads, load.wire) for load in made.loads} == {(16, "meta")}
    assert {workload.keys.length for workload in made.workloads} == {"16..40"}
    assert [load.threads for load in planned("loads.threads=[1, 4]").loads] == [1, 4]


@pytest.mark.parametrize(
    ("table", "setting", "values"),
    [
        ("workloads", "hit_ratio", [0.5, 0.9, 1.0]),
        ("workloads", "run", [1, 1000]),
        ("loads", "depth", [1, 8]),
        ("loads", "wire", ["text", "meta"]),
    ],
)
def test_a_list_makes_one_for_each_value(table: str, setting: str, values: list[object]) -> None:
    made = getattr(planned(f"{table}.{setting}={values}"), table)
    assert [getattr(each, setting) for each in made] == values
    names = [each.name for each in getattr(planned(), table)]
    assert [each.name for each in made] == [
        f"{name}-{value}-{setting}" for name in names for value in values
    ]


def test_a_list_of_texts_is_read_as_its_option() -> None:
    loads = planned("loads.rate=['1k', '2.5k']").loads
    assert {(load.schedule, load.rate) for load in loads} == {("poisson", 1000), ("poisson", 2500)}
    assert loads[0].name.endswith("-1000-rate")
    assert [each.run for each in planned("workloads.run=['1', '1k']").workloads] == [1, 1000]


def test_a_list_is_completed_as_its_option_would_be() -> None:
    made = planned("loads.rate=[1000, 2000]")
    assert {(load.schedule, load.rate) for load in made.loads} == {
        ("poisson", 1000.0),
        ("poisson", 2000.0),
    }
    assert made.design == "trials"
    cold = planned("workloads.mix=fetch=1", "workloads.prefill=[0.5, 0.0]").workloads
    assert [(each.prefill, each.warmup_ms) for each in cold] == [(0.5, None), (0.0, 0)]
    both = RunOptions(client=("native",), set=("workloads.hit_ratio=[0.5, 0.9]",)).overrides()
    typed = planned_experiment("emcache", both).workloads
    assert {(each.hit_ratio, each.prefill) for each in typed} == {(0.5, 1.0), (0.9, 1.0)}


def test_settings_that_never_had_an_option_are_reached_too() -> None:
    made = planned("timing.silence_ms=20000", "rounds.lead_in_percent=20", "workloads.passes=2")
    assert (made.timing.silence_ms, made.rounds.lead_in_percent) == (20_000, 20.0)
    assert {workload.passes for workload in made.workloads} == {2}


def test_text_needs_no_quotes_and_may_look_like_a_number() -> None:
    made = planned("placement.worker=0", "noise=note", "awake=true", "margin_percent=7")
    assert (made.placement.worker, made.noise, made.awake) == ("0", "note", True)
    assert made.margin_percent == 7


def test_a_server_is_added_beside_those_of_the_experiment() -> None:
    own = planned().servers
    added = RunOptions(client=("native",), server=("+yrmcds",)).overrides()
    assert planned_experiment("quick", added).servers == [*own, "yrmcds"]


def test_every_path_is_read_in_one_way() -> None:
    own = {field.name for field in fields(Overrides)}
    assert set(ENGINE_PATHS.values()) == {field.name for field in fields(WorkOptions)} - {"zipf"}
    assert set(ENGINE_PATHS.values()) <= own
    assert not set(ENGINE_PATHS) - set(paths())
    for path in paths():
        assert path.split(".")[-1] not in ("name", "keys", "values", "measure"), path


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("loads.thread=4", "--set loads.thread: no such setting\n  there are loads.threads"),
        ("loads.name=x", "--set loads.name: no such setting"),
        ("loads.refill", "--set loads.refill: a value is missing"),
        ("loads.refill=most", "--set loads.refill=most: Invalid enum value 'most'"),
        ("timing.timeout_ms=0", "--set timing.timeout_ms=0: Expected `int` >= 1"),
        ("loads.depth=deep", "--set loads.depth=deep: Expected `int`, got `str`"),
        ("loads.measure.rate=9", "--set loads.measure.rate: the experiment has no such table"),
        ("workloads.keys.length=4q", "'--set workloads.keys.length"),
        ("workloads.prefill=1.5", "'--set workloads.prefill"),
        (
            "workloads.hit_ratio=[0.5, 1.5]",
            "--set workloads.hit_ratio=1.5: Expected `float` <= 1.0",
        ),
        ("loads.rate=[1000, -1]", "--set loads.rate=-1: Expected `float` > 0.0\n"),
        ("loads.rate=['1k', 'fast']", "invalid value 'fast' for '--rate <RATE>'"),
        (
            "loads.depth=[2, '1']",
            "--set loads.depth='1': Expected `int`, got `str`\n  write depth =",
        ),
        ("loads.rate=[1000, 2000]", "--search tries rates itself"),
        ("loads.think=['1ms', '2ms']", "--search plays open loops, which have no think time"),
        ("workloads.hit_ratio=[]", "hit_ratio is an empty list"),
        ("scale=0", "--set scale=0: out of range"),
        ("design=rounds", "--search plays trials, not rounds\n  leave out --set design"),
        ("search=p99<1ms", "--search and --set of the same setting"),
    ],
)
def test_errors_name_the_path(inside: Inside, setting: str, says: str) -> None:
    search = ("--search", "p99<1ms") if "search" in says else ()
    ended = inside("run", "quick", "--client", "native", *search, "--set", setting, "--dry-run")
    assert ended.returncode == 2
    assert says in ended.stderr


def test_a_removed_option_is_refused(inside: Inside, tmp_path: Path) -> None:
    ended = inside("run", "quick", "--client", "native", "--wire", "meta")
    assert ended.returncode == 2
    assert "--wire" in ended.stderr
    assert not (tmp_path / "results").exists()


def test_what_is_no_setting_is_refused_before_anything_is_read() -> None:
    with pytest.raises(UsageError, match="no such setting"):
        typed_settings(["__class__=1"])
