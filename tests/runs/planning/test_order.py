"""Which trials can tell lost and stale writes, and what a plan says where they cannot."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cachemark.endpoints.servers import parse_spec
from cachemark.model.experiment import Load, Measure
from cachemark.model.plan import make_plan
from cachemark.runs.generations import generations_of, lines_about_order
from cachemark.runs.tapes import Generations
from tests.builders.outcomes import experiment

LOAD = Load(name="one", threads=2, processes=3)


def load(**changes: Any) -> Load:
    return msgspec.structs.replace(LOAD, **changes)


def found(of: Load, server: str = "memcached", hosts: int = 1, *, rounds: bool = False) -> object:
    return generations_of(of, parse_spec(server), hosts=hosts, in_rounds=rounds)


@pytest.mark.parametrize(
    "changes",
    [{}, {"schedule": "poisson", "rate": 100}, {"depth": 8}, {"think": "1ms"}, {"connections": 1}],
)
def test_all_callers_of_all_hosts_are_lanes(changes: dict[str, Any]) -> None:
    assert found(load(**changes)) == Generations(lanes=6)
    assert found(load(**changes), "cluster:2:memcached", hosts=2) == Generations(lanes=12)


def test_arms_that_share_a_server_write_alike() -> None:
    assert found(LOAD, "remote:h:1", rounds=True) == Generations(lanes=6, shared_server=True)
    assert found(LOAD, "remote:h:1") == Generations(lanes=6)


@pytest.mark.parametrize(
    ("changes", "server"),
    [
        ({"connections": 4}, "memcached"),
        ({"depth": 8, "think": "1ms"}, "memcached"),
        ({"measure": Measure(rate=1)}, "memcached"),
        ({"depth": 8}, "nutcracker:memcached"),
        ({}, "none"),
    ],
)
def test_without_an_order_there_are_none(changes: dict[str, Any], server: str) -> None:
    assert found(load(**changes), server) is None


def lines(servers: list[str], mix: dict[str, float], **changes: Any) -> list[str]:
    made = experiment(["a"])
    workload = msgspec.structs.replace(made.workloads[0], mix=mix)
    changed = {"servers": servers, "workloads": [workload], "loads": [load(**changes)]}
    return lines_about_order(make_plan(msgspec.structs.replace(made, **changed)))


def test_a_plan_says_where_the_order_is_not_certain() -> None:
    mixed, quiet = {"get": 1.0, "set": 1.0}, {"get": 1.0, "set_noreply": 1.0}
    start = "one: lost and stale writes are not seen"
    unclaimed = f"{start} with clients that do not claim `in_order`"
    assert lines(["memcached"], mixed) == []
    assert lines(["memcached"], {"get": 1.0}, connections=4) == []
    assert lines(["memcached"], mixed, connections=4) == [
        f"{start}: a caller's operations go over several connections"
    ]
    assert lines(["memcached"], mixed, depth=8) == [unclaimed]
    assert lines(["memcached"], quiet) == [unclaimed]
    assert lines(["nutcracker:memcached"], mixed, depth=8) == [
        f"{unclaimed}, and through nutcracker"
    ]
