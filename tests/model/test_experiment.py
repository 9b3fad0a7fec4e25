"""Experiments and plans: settings, errors, and the order of trials."""

import re
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachemark.model import suites
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Load
from cachemark.model.experiment_file import parse
from cachemark.model.plan import (
    Skipped,
    cells,
    loads_differing_only_in_wire,
    make_plan,
    uses_rounds,
)
from cachemark.model.suites import shortened
from cachemark.model.work_length import max_keys_per_command
from cachemark.runs.tapes import tape_arguments

TEXT = """name = "x"
question = "q"
clients = ["a", "b"]
servers = ["s", "t"]
[[workloads]]
name = "get"
mix = { get = 1 }
[workloads.keys]
count = 5
[[workloads]]
name = "set"
mix = { set = 1 }
loads = ["two"]
[[loads]]
name = "one"
[[loads]]
name = "two"
threads = 2
"""


def _asking_for_rounds(text: str, says: str) -> str:
    return f'design = "rounds"\n{text}' if "without an end" in says else text


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("count = 5", "count = 0", "f.toml:9: workloads[0].keys.count: Expected `int` >= 1"),
        ("count = 5", "cuont = 5", "f.toml:9: workloads[0].keys.cuont: no such setting"),
        ("threads = 2", "threads = -1", "f.toml:18: loads[1].threads: Expected `int` >= 1"),
        ('name = "two"', 'name = "a b"', "f.toml:17: loads[1].name: not a value of this setting"),
        ('name = "one"', 'name = ""', "f.toml:15: loads[0].name: not a value of this setting"),
        ('loads = ["two"]', "loads = []", "f.toml:13: workloads[1].loads: Expected `array`"),
        ("threads = 2", "threads = 2\n[timing]\nready_ms = 0", "f.toml:20: timing.ready_ms:"),
        ("count = 5", f"count = {10**20}", "workloads[0].keys.count: Expected `int` <="),
        ("threads = 2", "rate = 5", "load 'two': a closed loop has no rate"),
        ("threads = 2", 'refill = "all"', 'refill "all" is for a closed loop with a depth above 1'),
        ("threads = 2", 'schedule = "poisson"', "load 'two': schedule 'poisson' needs a rate"),
        ("threads = 2", "threads = 2\nconnections = 3", "3 connections cannot be shared"),
        ('loads = ["two"]', 'loads = ["three"]', "workload 'set': no load 'three'"),
        ('name = "two"', 'name = "one"', "load 'one' is listed twice"),
        ('clients = ["a", "b"]', "clients = []", "f.toml: no client"),
        ("mix = { get = 1 }", "sequence = ['get0']", "not a value of this setting"),
        ("mix = { get = 1 }", "run = 2", "it needs a mix, a sequence, a preset or a trace"),
        ("mix = { get = 1 }", "mix = { get = 1 }\nkey_step = 1", "key_step needs a sequence"),
        ("mix = { get = 1 }", "mix = { get = 0 }", "Expected `float` > 0.0"),
        (
            'question = "q"',
            'question = "q"\nrounds = { slice_ms = 4 }',
            "rounds.slice_ms: Expected",
        ),
        ('question = "q"', 'question = "q"\ndesign = "turns"', "f.toml:3: design: Invalid enum"),
        (
            'question = "q"',
            'question = "q"\ndesign = "rounds"\nrounds = { slice_ms = 501 }',
            "slices of 501 ms; a closed loop takes at most 500 ms",
        ),
        (
            "mix = { get = 1 }",
            "mix = { get = 1 }\nfill_percent = 80",
            "rounds need a workload without an end",
        ),
    ],
)
def test_a_wrong_setting_is_one_clear_error_with_its_line(old: str, new: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(_asking_for_rounds(TEXT.replace(old, new), says), "f.toml")
    assert says in str(refused.value)


def test_the_shipped_suites_can_be_read() -> None:
    assert {"quick", "emcache"} <= set(suites.names())
    for name in suites.names():
        assert suites.find(name).analysis
    assert suites.find("emcache", quick=True).name == "emcache"


def test_a_workload_is_played_with_its_own_loads() -> None:
    made = cells(parse(TEXT, "f.toml"))
    assert Counter((cell.workload, cell.load) for cell in made) == {
        ("get", "one"): 4,
        ("get", "two"): 4,
        ("set", "two"): 4,
    }


@given(st.integers(0, 2**53), st.integers(1, 6))
def test_each_block_runs_every_cell_once(seed: int, blocks: int) -> None:
    experiment = parse(f"seed = {seed}\nblocks = {blocks}\n{TEXT}", "f.toml")
    trials = make_plan(experiment).trials
    assert trials == make_plan(experiment).trials
    assert [trial.index for trial in trials] == list(range(len(trials)))
    every = Counter(map(str, cells(experiment)))
    for block in range(blocks):
        members = [trial for trial in trials if trial.block == block]
        assert Counter(str(trial.cell) for trial in members) == every
        assert len({trial.tape_seed for trial in members}) == 1
    assert len({trial.tape_seed for trial in trials}) == blocks


def test_blocks_are_shuffled_differently() -> None:
    trials = make_plan(parse(f'blocks = 4\ndesign = "trials"\n{TEXT}', "f.toml")).trials
    orders = {tuple(str(t.cell) for t in trials if t.block == block) for block in range(4)}
    assert len(orders) == 4


def test_sittings_have_every_cell_once_a_block_and_whole_sets() -> None:
    plan = make_plan(parse(f'blocks = 4\ndesign = "rounds"\n{TEXT}', "f.toml"))
    assert [sitting.number for sitting in plan.sittings] == list(range(len(plan.sittings)))
    for block in range(4):
        played = [s.trials for s in plan.sittings if s.block == block]
        assert sorted(str(t.cell) for trials in played for t in trials) == sorted(
            map(str, plan.cells)
        )
        assert len({t.tape_seed for trials in played for t in trials}) == 1
    assert [t.index for s in plan.sittings for t in s.trials] == list(range(len(plan.trials)))


def test_skipped_cells_are_no_trials() -> None:
    experiment = parse(TEXT, "f.toml")
    gone = cells(experiment)[0]
    plan = make_plan(experiment, [Skipped(cell=gone, reason="not here")])
    assert gone not in plan.playable
    assert gone not in [trial.cell for trial in plan.trials]
    assert gone in plan.cells


DESIGNS = [
    ("closed loops", "", "rounds"),
    ("asked for", 'design = "trials"', "trials"),
    ("an open loop", "open", "trials"),
    ("a number of operations", "ops", "trials"),
    ("one cell", "single", "trials"),
]


@pytest.mark.parametrize(
    ("change", "expected"), [c[1:] for c in DESIGNS], ids=[c[0] for c in DESIGNS]
)
def test_the_design_fits_the_load_and_the_workload(change: str, expected: str) -> None:
    text = TEXT
    if change == "open":
        text = text.replace("threads = 2", 'schedule = "uniform"\nrate = 100')
    elif change == "ops":
        text = text.replace('name = "get"', 'name = "get"\nops = 100')
    elif change == "single":
        text = re.sub(r"clients = .*", 'clients = ["native"]', text)
        text = re.sub(r"servers = .*", 'servers = ["embedded"]', text)
    else:
        text = f"{change}\n{text}"
    if "design" not in text:
        text = f'design = "auto"\n{text}'
    assert uses_rounds(parse(text, "f.toml")) is (expected == "rounds")


def test_loads_become_the_options_of_tape_write() -> None:
    experiment = parse(TEXT.replace("threads = 2", 'schedule = "uniform"\nrate = 100.5'), "f.toml")
    closed = tape_arguments(experiment.workloads[0], experiment.loads[0], experiment.timing, 7)
    assert closed[:2] == ["--seed", "7"]
    assert closed[closed.index("--keys") + 1] == "5"
    assert closed[-2:] == ["--window-ops", "250000"]
    opened = tape_arguments(experiment.workloads[0], experiment.loads[1], experiment.timing, 7)
    assert opened[-6:] == ["--schedule", "uniform", "--rate", "100.5", "--duration", "1000ms"]


def test_a_sequence_replaces_the_mix() -> None:
    text = TEXT.replace("mix = { get = 1 }", "sequence = ['set@0', 'mget@0-5']\nkey_step = 4", 1)
    experiment = parse(text, "f.toml")
    words = tape_arguments(experiment.workloads[0], experiment.loads[0], experiment.timing, 7)
    assert "--mix" not in words
    assert words[words.index("--sequence") + 1] == "set@0 mget@0-5"
    assert words[words.index("--key-step") + 1] == "4"
    longest = msgspec.structs.replace(experiment.workloads[0], run=1)
    assert max_keys_per_command(longest) == 6


def test_in_process_caches_have_no_server() -> None:
    experiment = parse(TEXT, "f.toml")
    both = msgspec.structs.replace(experiment, in_process=["c"])
    alone = [cell for cell in cells(both) if cell.client == "c"]
    assert {cell.server for cell in alone} == {"none"}
    others = [cell for cell in cells(both) if cell.client != "c"]
    assert others == cells(experiment)


def test_in_process_caches_play_loads_that_differ_in_wire_once() -> None:
    experiment = parse(TEXT, "f.toml")
    text = Load(name="text", wire="text")
    loads = [text, Load(name="binary", wire="binary"), Load(name="deep", wire="binary", depth=2)]
    workload = msgspec.structs.replace(experiment.workloads[0], loads=None)
    made = msgspec.structs.replace(experiment, workloads=[workload], loads=loads, in_process=["c"])
    assert [cell.load for cell in cells(made) if cell.client == "c"] == ["text", "deep"]
    assert loads_differing_only_in_wire(made, workload, "binary") == ["text", "binary"]


def test_a_quick_grid_is_what_it_names() -> None:
    quick = "[quick]\nblocks = 1\nclients = ['a']\nloads = ['one']\nscale = 0.1\n"
    experiment = parse(TEXT + quick, "f.toml")
    assert experiment.quick is not None
    small = shortened(experiment, experiment.quick)
    assert (small.blocks, small.clients, [load.name for load in small.loads]) == (1, ["a"], ["one"])
    assert small.quick is None
