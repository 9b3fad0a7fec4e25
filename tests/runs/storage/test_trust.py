"""An imported run starts, installs and contacts nothing that its reader has not agreed to."""

from __future__ import annotations

import msgspec
import pytest

from cachemark.runs.storage.trust import named_programs
from tests.builders.outcomes import WORKLOAD, experiment


@pytest.mark.parametrize(
    "client",
    [
        "command:/bin/sh",
        "python/pymemcache@1.0",
        "python/pymemcache@../fork",
        "python/pymemcache@1.0@defaults",
        "python/pymemcache@1.0?depth=2",
    ],
)
def test_a_client_that_would_be_started_or_installed_is_named(client: str) -> None:
    assert named_programs(experiment(clients=[client])) == [f"client {client}"]


@pytest.mark.parametrize("client", ["native", "python/pymemcache@defaults", "go/grafana?mode=a@b"])
def test_a_client_that_is_set_up_here_is_not_named(client: str) -> None:
    assert named_programs(experiment(clients=[client])) == []


def test_a_trace_that_would_be_read_is_named() -> None:
    """It may be any file of this machine, whose keys are sent to a server."""
    grid = experiment(clients=["native"])
    traced = msgspec.structs.replace(WORKLOAD, trace="/root/secret", mix={})
    grid = msgspec.structs.replace(grid, workloads=[WORKLOAD, traced])
    assert named_programs(grid) == ["trace /root/secret"]
