"""What options make of an experiment's loads."""

from __future__ import annotations

import pytest

from cachemark.cli.overrides import Overrides, apply
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Experiment
from cachemark.model.experiment_file import parse

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
    return apply(parse(EXPERIMENT, "e.toml"), overrides, lambda _: False)


def told(experiment: Experiment) -> list[tuple[str, str, int]]:
    return [(load.name, load.wire, load.depth) for load in experiment.loads]


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
