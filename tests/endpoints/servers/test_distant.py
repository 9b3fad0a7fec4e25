"""A server at a distance: the proxy holds bytes for the time, loses none, and says what it held."""

import json
import os
import shutil
from pathlib import Path

import pytest

from cachemark.endpoints.servers import RunningServer, parse_spec, running
from cachemark.model.errors import TrialError
from cachemark.model.histogram import decode
from cachemark.model.outcome import Outcome
from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside
from tests.endpoints.servers.raw_requests import ask

ROUND_TRIP_NS = 2_000_000
RUN = (
    *("run", "--round-trip", "2ms", "--blocks", "1", "--ops", "100", "--keys", "50"),
    *("--set", "design=trials", "--set", "timing.warmup_ms=0", "--set", "noise=note"),
)

needs_memcached = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)


def median_ns(outcome: Outcome, kind: str) -> float:
    """The median response time of a kind of operation."""
    assert outcome.measure is not None
    return decode(outcome.measure.operations[kind].response).percentile(50)


@needs_memcached
@pytest.mark.parametrize("server", ["memcached", "memcached:tls=yes", "cluster:2:memcached"])
def test_no_client_is_nearer_than_the_distance(inside: Inside, tmp_path: Path, server: str) -> None:
    clients = ("--client", "native", "--client", "python/pymemcache")
    ended = inside(*RUN, *clients, "--server", server, "--mix", "get=1,set=1")
    assert ended.returncode == 0, ended.stderr
    outcomes = read_outcomes(tmp_path)
    assert {outcome.verdict for outcome in outcomes} == {"VALID"}, outcomes
    assert {outcome.trial.cell.server for outcome in outcomes} == {f"distant:2ms:{server}"}
    for outcome in outcomes:
        assert min(median_ns(outcome, kind) for kind in ("get", "set")) >= ROUND_TRIP_NS
        assert outcome.server is not None
        distance = outcome.server.distance
        assert distance is not None
        assert (distance.round_trip_ns, distance.refused) == (ROUND_TRIP_NS, 0)
        assert distance.connections >= 1
        assert [each.least_ns >= ROUND_TRIP_NS // 2 for each in distance.held] == [True, True]
        assert all(each.pieces >= 100 and each.full == 0 for each in distance.held)
    notes = json.loads(inside("report", "--format", "json").stdout)["notes"]
    (line,) = (note for note in notes if note.startswith("Distance to "))
    assert line.startswith(f"Distance to distant:2ms:{server}: 2.00 ms there and back; bytes were")
    assert "without a distance the proxy itself takes" in line


@needs_memcached
def test_large_values_pass_whole_at_depth(inside: Inside, tmp_path: Path) -> None:
    work = ("--mix", "get=1,set=1", "--size", "1..900k", "--depth", "8")
    patience = ("--set", "timing.timeout_ms=30000")
    ended = inside(*RUN, "--client", "native", "--server", "memcached", *work, *patience)
    assert ended.returncode == 0, ended.stderr
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.verdict == "VALID", outcome.findings
    assert outcome.server is not None
    assert outcome.server.distance is not None
    assert sum(each.bytes for each in outcome.server.distance.held) > 10**7


def test_a_proxy_between_that_dies_is_named() -> None:
    with running(parse_spec("distant:1us:embedded:memory=16m")) as server:
        assert ask(server.addresses[0], b"set k 0 0 1\r\nx\r\n") == b"STORED\r\n"
        (proxy,) = server.between
        assert proxy not in server.pids
        os.kill(proxy, 9)
        with pytest.raises(TrialError, match="distance: the server exited with status -9"):
            _until_it_fails(server)
        assert server.final_facts() == server.facts


def _until_it_fails(server: RunningServer) -> None:
    while True:
        server.stats()
