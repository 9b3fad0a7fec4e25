"""More connections than a server takes are refused before the trial, with the server's limit."""

from __future__ import annotations

import pytest

from cachemark.model.server_stats import ServerStats
from cachemark.runs.trials.callers import too_many_connections
from tests.cli.in_process import Inside, inside

__all__ = ["inside"]


@pytest.mark.parametrize(("connections", "fits"), [(38, True), (39, False)])
def test_the_connections_that_are_there_count(connections: int, *, fits: bool) -> None:
    stats = ServerStats({"max_connections": "40", "curr_connections": "2"})
    assert bool(too_many_connections(connections, [ServerStats(), stats])) != fits


def test_what_a_server_does_not_tell_refuses_nothing() -> None:
    assert not too_many_connections(10**6, [ServerStats({"curr_connections": "2"})])


@pytest.mark.parametrize("client", ["native", "python/pymemcache"])
def test_a_run_says_how_many_the_server_takes(inside: Inside, client: str) -> None:
    words = ["--client", client, "--server", "memcached:connections=40,threads=1"]
    words += ["--threads", "100", "--blocks", "1", "--set", "design=trials"]
    told = inside("run", *words)
    assert "100 connections at once, and the server takes 40" in " ".join(told.stdout.split())
    assert "memcached:connections=2000" in " ".join(told.stdout.split())
