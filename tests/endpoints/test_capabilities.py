"""What a trial needs of a worker is refused where the worker does not claim it."""

from __future__ import annotations

from typing import Any

import pytest

from cachemark.endpoints.capabilities import Demand, unclaimed
from cachemark.model.protocol import Prepare, Ready

ONE = "127.0.0.1:11211"
PLAIN: dict[str, Any] = {"servers": [ONE], "tape": "t"}


@pytest.mark.parametrize(
    ("capability", "prepare", "demand"),
    [
        ("threads", {"threads": 2, "connections": 2}, {}),
        ("pipeline", {"depth": 2}, {}),
        ("shared", {"threads": 4, "connections": 2}, {}),
        ("cluster", {"servers": [ONE, "127.0.0.1:11212"]}, {}),
        ("unix", {"servers": ["unix:/run/memcached.sock"]}, {}),
        ("open_loop", {}, {"open_loop": True}),
        ("think", {}, {"think": True}),
        ("gat", {}, {"kinds": {"gat"}}),
    ],
)
def test_a_capability_that_is_not_claimed_is_refused(
    capability: str, prepare: dict[str, Any], demand: dict[str, Any]
) -> None:
    wanted = Demand(prepare=Prepare(**{**PLAIN, **prepare}), **demand)
    others = {"threads", "pipeline", "shared", "cluster", "unix", "open_loop", "think", "get"}
    without = Ready(client="made", capabilities=sorted(others - {capability}))
    assert capability in unclaimed(wanted, without)
    claimed = Ready(client="made", capabilities=sorted(others | {capability}))
    assert unclaimed(wanted, claimed) == ""


def test_a_plain_trial_needs_only_its_kinds() -> None:
    wanted = Demand(prepare=Prepare(**PLAIN), kinds={"get", "set"})
    assert unclaimed(wanted, Ready(client="made", capabilities=["get", "set"])) == ""
