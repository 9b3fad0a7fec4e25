"""Options change an experiment's loads."""

import re
from typing import Any

import pytest

from cachemark.cli.overrides import Overrides, apply
from cachemark.cli.run_options import RunOptions
from cachemark.host.process import binary_path
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.experiment_file import parse
from cachemark.model.suites import find

EXPERIMENT = """
name = "e"
question = "Which?"
clients = ["native"]
servers = ["embedded"]

[[workloads]]
name = "any"
mix = { get = 1 }

[[workloads]]
name = "deep"
mix = { get = 1 }
loads = ["text-deep"]

[[loads]]
name = "text"
wire = "text"

[[loads]]
name = "text-deep"
wire = "text"
depth = 8

[[loads]]
name = "binary"
wire = "binary"
"""


def changed(overrides: Overrides) -> Experiment:
    return apply(parse(EXPERIMENT, "e.toml"), overrides, lambda _: False, binary_path())


def told(experiment: Experiment) -> list[tuple[str, str, int]]:
    return [(load.name, load.wire, load.depth) for load in experiment.loads]


def test_the_command_line_says_what_is_ranked() -> None:
    assert changed(Overrides()).rank == "clients"
    assert changed(Overrides(rank="servers")).rank == "servers"


def test_a_name_tells_the_wire_that_is_played() -> None:
    assert told(changed(Overrides(wire="meta"))) == [("meta", "meta", 1), ("meta-deep", "meta", 8)]
    assert changed(Overrides(wire="meta")).workloads[1].loads == ["meta-deep"]
    threads = changed(Overrides(wire="text", threads=(2,), load=("text", "binary")))
    assert told(threads) == [("text-2-threads", "text", 1)]


def test_only_some_loads_are_played() -> None:
    some = changed(Overrides(load=("binary", "text")))
    assert [load.name for load in some.loads] == ["text", "binary"]
    assert [workload.name for workload in some.workloads] == ["any"]
    deep = changed(Overrides(load=("text-deep",), depth=4))
    assert told(deep) == [("text-deep", "text", 4)]
    assert [workload.name for workload in deep.workloads] == ["any", "deep"]


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (Overrides(load=("none",)), "--load none: no such load in e"),
        (Overrides(load=("text",), workload=("deep",)), "no workload uses it"),
        (Overrides(depth=4), "'text' and 'text-deep' differ only in their names"),
    ],
)
def test_what_cannot_be_chosen_is_refused(overrides: Overrides, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        changed(overrides)


def test_the_work_is_taken_where_it_is_typed() -> None:
    typed = Overrides(
        workload=("any",), mix="set=5,get=95", size="1k..4k", keys="50k", zipf="0.99", prefill="0.5"
    )
    (workload,) = changed(typed).workloads
    assert list(workload.mix.items()) == [("set", 5.0), ("get", 95.0)]
    assert (workload.values.size, workload.prefill) == ("1k..4k", 0.5)
    assert (workload.keys.count, workload.keys.distribution) == (50_000, "zipf:0.99")
    assert workload.name == "set-5-get-95-1k..4k-50k-keys"


def test_workloads_that_become_the_same_are_one() -> None:
    same = changed(Overrides(mix="get=1", load=("text-deep",)))
    assert [workload.name for workload in same.workloads] == ["get-1"]


def test_typed_work_replaces_other_sources_of_work() -> None:
    preset = changed(Overrides(workload=("any",), preset="etc", prefill="1")).workloads[0]
    assert (preset.mix, preset.prefill, preset.name) == ({"get": 30.0, "set": 1.0}, 1.0, "etc")
    trace = changed(Overrides(workload=("any",), trace="/logs/day 1.csv")).workloads[0]
    # A trace begins with a cold cache.
    assert (trace.mix, trace.prefill, trace.name) == ({}, 0.0, "day-1")
    warm = changed(Overrides(workload=("any",), trace="day.csv", prefill="1")).workloads[0]
    assert warm.prefill == 1.0


def test_a_rate_alone_means_poisson_arrivals() -> None:
    (load,) = changed(Overrides(load=("text",), rate="20k", connections=4)).loads
    assert (load.schedule, load.rate, load.connections) == ("poisson", 20_000.0, 4)
    (uniform,) = changed(Overrides(load=("text",), rate="2k", schedule="uniform")).loads
    assert uniform.schedule == "uniform"


def test_what_cannot_be_played_in_turns_is_played_in_trials() -> None:
    turns = parse(f'design = "rounds"\n{EXPERIMENT}\n[timing]\nmeasure_ms = 300', "e.toml")

    def played(**options: Any) -> tuple[str, int]:
        typed = Overrides(**options)
        made = apply(turns, typed, lambda _: False, binary_path())
        return made.design, made.timing.measure_ms

    assert played(size="1k") == ("rounds", 300)
    assert played(rate="100") == ("trials", 1000)
    assert played(rate="100", measure_ms=50) == ("trials", 50)
    assert played(ops=500)[0] == "trials"


def test_servers_replace_those_of_the_experiment_or_are_added() -> None:
    own = changed(Overrides()).servers
    assert changed(Overrides(server=("memcached",))).servers == ["memcached"]
    more = ("memcached:threads=2", *own)
    assert changed(Overrides(add_server=more)).servers == [*own, "memcached:threads=2"]
    both = Overrides(server=("memcached",), add_server=("embedded:io=uring",))
    assert changed(both).servers == ["memcached", "embedded:io=uring"]


def test_the_end_of_a_window_is_typed() -> None:
    (counted,) = changed(Overrides(workload=("any",), ops=5000)).workloads
    assert (counted.name, counted.ops, counted.records) == ("any", 5000, None)
    longer = apply(find("emcache"), Overrides(scale=10, fill=60), lambda _: False, binary_path())
    assert [w.fill_percent for w in longer.workloads] == [None, None, None, None, 60]
    lengths = {w.name: (w.ops, w.keys.count) for w in longer.workloads}
    assert lengths["get"] == (1_000_000, 1)
    assert lengths["fill"] == (None, 16_000_000)
    tenth = apply(find("server-modes"), Overrides(scale=0.1), lambda _: False, binary_path())
    assert [(w.ops, w.records, w.keys.count) for w in tenth.workloads] == [
        (30, 30, 10),
        (6000, 6000, 2000),
    ]
    once = apply(find("server-modes"), Overrides(ops=900), lambda _: False, binary_path())
    assert {(w.ops, w.records) for w in once.workloads} == {(900, 900)}
    timed = Overrides(workload=("get", "fill"), measure_ms=300, design="trials")
    by_time = apply(find("emcache"), timed, lambda _: False, binary_path())
    assert [(w.ops, w.fill_percent) for w in by_time.workloads] == [(None, None), (None, 80)]


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (Overrides(ops=0), "--ops: Expected `int` >= 1"),
        (Overrides(ops=9, measure_ms=50), "--measure-ms: each workload ends by itself"),
        (Overrides(fill=80), "no workload fills a server"),
        (Overrides(scale=0), "--scale 0: out of range"),
        (Overrides(scale=float("inf")), "--scale inf: out of range"),
        (Overrides(scale=float("nan")), "--scale nan: out of range"),
    ],
)
def test_an_end_that_cannot_be_is_refused(overrides: Overrides, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        changed(overrides)
    with pytest.raises(UsageError, match="--fill 100: not a percentage"):
        apply(find("emcache"), Overrides(fill=100), lambda _: False, binary_path())


def test_typed_clients_and_work_have_their_own_question() -> None:
    assert changed(Overrides(depth=1, load=("text", "binary"))).question == "Which?"
    assert changed(Overrides(size="1k")).question == "How fast is native with this work?"
    two = changed(Overrides(client=("go/gomemcache", "native")))
    assert two.question == "Which of these clients is fastest with this work?"


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (Overrides(size="4 kB.."), "--size"),
        (Overrides(mix="gett=1"), 'unknown operation "gett": use get'),
        (Overrides(preset="ycsb-e"), "--preset: no preset 'ycsb-e'"),
        (Overrides(trace="a.csv", mix="get=1"), "cannot be used with"),
        (Overrides(prefill="1.5"), "for '--prefill <PREFILL>': write a number from 0 to 1"),
        (Overrides(prefill="0.5", hit_ratio="0.5"), "hit_ratio sets the prefill itself"),
        (Overrides(rate="0"), "a rate must be above 0"),
        (Overrides(schedule="closed", rate="5"), "a closed loop has no rate"),
    ],
)
def test_a_slip_in_typed_work_is_one_clear_error(overrides: Overrides, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        changed(overrides)


def test_as_many_blocks_as_trials_that_shall_be_valid() -> None:
    made = changed(Overrides(until_valid=3))
    assert (made.blocks, made.until_valid) == (3, 3)
    whole = parse("until_valid = 4\n" + EXPERIMENT, "e.toml")
    assert (whole.blocks, whole.until_valid) == (4, 4)
    fewer = apply(whole, Overrides(blocks=2), lambda _: False, binary_path())
    assert (fewer.blocks, fewer.until_valid) == (2, 2)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("until_valid = 4\nblocks = 5\n", "leave out blocks"),
        ("until_valid = 0\n", ">= 1"),
        ('until_valid = 4\ntwice = "native"\n', 'set design = "trials"'),
        ('until_valid = 4\nsearch = "p99<1ms"\n', "leave out until_valid"),
    ],
)
def test_replays_that_make_no_sense_are_refused(settings: str, says: str) -> None:
    text = EXPERIMENT
    if "search" in settings:
        text = text.replace("wire =", 'schedule = "poisson"\nwire =')
    with pytest.raises(UsageError) as refused:
        parse(settings + text, "e.toml")
    assert says in f"{refused.value.text} {refused.value.remedy}"


def test_a_duration_is_the_length_of_the_window() -> None:
    assert RunOptions(duration="1s").overrides() == RunOptions(measure_ms=1000).overrides()
    with pytest.raises(UsageError, match="--duration and --measure-ms are one setting"):
        RunOptions(duration="1s", measure_ms=1000).overrides()
    with pytest.raises(UsageError, match="--duration: '1 hour' is no time"):
        RunOptions(duration="1 hour").overrides()
