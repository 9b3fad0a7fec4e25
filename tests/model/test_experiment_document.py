"""Lists of factors, a trace's defaults, and errors that show how a setting is written."""

import pytest

from cachemark.model.errors import UsageError
from cachemark.model.experiment_file import parse

HEAD = 'name = "e"\nquestion = "Which?"\nclients = ["native"]\nservers = ["embedded"]\n'
WORK = '[[workloads]]\nname = "w"\nmix = { get = 1 }\n'
LOADS = """
[[loads]]
name = "one"
[[loads]]
name = "callers"
threads = [1, 4, 16]
depth = [1, 8]
"""


def test_a_list_of_factors_is_a_load_for_each_value() -> None:
    read = parse(HEAD + WORK + LOADS, "e.toml")
    assert [(load.name, load.threads, load.depth) for load in read.loads[:3]] == [
        ("one", 1, 1),
        ("callers-1-threads-1-depth", 1, 1),
        ("callers-1-threads-8-depth", 1, 8),
    ]
    assert len(read.loads) == 7


def test_a_list_of_hit_ratios_is_a_workload_for_each() -> None:
    work = WORK + 'hit_ratio = [0.5, 0.9, 1.0]\nloads = ["callers"]\n'
    read = parse(HEAD + work + LOADS, "e.toml")
    assert [(one.name, one.hit_ratio) for one in read.workloads] == [
        ("w-0.5-hit_ratio", 0.5), ("w-0.9-hit_ratio", 0.9), ("w-1.0-hit_ratio", 1.0),
    ]  # fmt: skip
    assert {len(one.loads or []) for one in read.workloads} == {6}
    mget = WORK.replace("get = 1", "mget = 1") + "run = [10, 100]\nprefill = [0.5, 1.0]\n"
    read = parse(HEAD + mget + LOADS, "e.toml")
    assert [(one.run, one.prefill) for one in read.workloads] == [
        (10, 0.5), (100, 0.5), (10, 1.0), (100, 1.0),
    ]  # fmt: skip


def test_a_workload_that_names_the_list_plays_all_its_loads() -> None:
    read = parse(HEAD + WORK + 'loads = ["callers"]\n' + LOADS, "e.toml")
    assert read.workloads[0].loads == [load.name for load in read.loads[1:]]


def test_a_trace_begins_cold_and_is_played_once() -> None:
    trace = HEAD + '[[workloads]]\nname = "t"\ntrace = "day.csv"\n{}[[loads]]\nname = "l"\n'
    cold = parse(trace.format(""), "e.toml").workloads[0]
    assert (cold.prefill, cold.passes, cold.warmup_ms) == (0.0, 1, 0)
    warm = parse(trace.format("prefill = 1\n"), "e.toml").workloads[0]
    assert (warm.prefill, warm.passes, warm.warmup_ms) == (1.0, 1, None)
    ops = parse(trace.format("ops = 5000\n"), "e.toml").workloads[0]
    assert (ops.passes, ops.ops) == (None, 5000)
    other = parse(HEAD + WORK + LOADS, "e.toml").workloads[0]
    assert (other.prefill, other.passes, other.warmup_ms) == (1.0, None, None)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"w"\n', '"w"\nvalues = { size = "4 kB" }\n', "e.toml:7: workloads[0].values.size: not a"),
        ('"w"\n', '"w"\nvalues = { size = "4 kB" }\n', 'write size = "100", or size = "1k..64k"'),
        ('"one"', '"one"\nschedule = "often"', "e.toml:11: loads[0].schedule: not a value"),
        ('"one"', '"one"\nschedule = "often"', 'schedule = "poisson", or schedule = "bursts:5:'),
        ("[1, 8]", '[1, "x"]', "e.toml:14: loads[1].depth: Expected `int`"),
        ("[1, 8]", '[1, "x"]', "write depth = 8"),
        ('"w"\n', '"w"\nhit_ratio = [0.5, 2]\n', "e.toml:7: workloads[0].hit_ratio: Expected"),
        ('"w"\n', '"w"\nhit_ratio = []\n', "workload 'w': hit_ratio is an empty list"),
        ("[1, 8]", "[]", "load 'callers': depth is an empty list"),
        ("[1, 8]", str(list(range(1, 500))), "load 'callers': 1,497 loads"),
    ],
)
def test_a_wrong_value_names_the_place_and_an_example(old: str, new: str, says: str) -> None:
    text = HEAD + WORK + LOADS
    with pytest.raises(UsageError) as refused:
        parse(text.replace(old, new), "e.toml")
    assert says in str(refused.value)
    assert "regex" not in str(refused.value)
