"""TLS from several hosts: the hosts of clients get the certificates of the server's host."""

import shutil
from pathlib import Path

import pytest

from tests.builders.small_experiments import ROUNDS, TRIALS, read_outcomes, write
from tests.cli.in_process import Inside
from tests.runs.agents.conftest import SharedAgents

APART = (("both", "server", "127.0.0.1"), ("c", "client", "127.0.0.2"))


@pytest.mark.xdist_group("agents")
@pytest.mark.skipif(shutil.which("memcached") is None, reason="apt-get install memcached")
def test_all_hosts_reach_a_server_that_asks_for_certificates(
    inside: Inside, shared_agents: SharedAgents, tmp_path: Path
) -> None:
    file = write(tmp_path, TRIALS.replace("blocks = 2", 'blocks = 1\nnoise = "note"'))
    hosts = str(shared_agents.hosts_file(tmp_path))
    server = "memcached:memory=16,threads=1,tls=mutual"
    ended = inside("run", file, "--hosts", hosts, "--server", server)
    (outcome,) = read_outcomes(tmp_path)
    assert (outcome.state, outcome.reason) == ("measured", ""), ended.stderr
    assert outcome.measure is not None
    assert not any(each.errors for each in outcome.measure.operations.values())
    assert {part.name for part in outcome.hosts if part.measure} == {"both", "c"}
    assert b"PRIVATE KEY" not in b"".join(
        path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()
    )


@pytest.mark.xdist_group("agents")
def test_rounds_on_another_host_are_encrypted(
    inside: Inside, shared_agents: SharedAgents, tmp_path: Path
) -> None:
    file = write(tmp_path, ROUNDS.replace("blocks = 2", 'blocks = 1\nnoise = "note"'))
    hosts = str(shared_agents.hosts_file(tmp_path, hosts=APART))
    ended = inside("run", file, "--hosts", hosts, "--server", "embedded:tls=yes")
    arms = read_outcomes(tmp_path)
    assert [(arm.state, arm.reason) for arm in arms] == [("measured", "")] * 2, ended.stderr
    assert all("--tls-cert" in arm.server.command for arm in arms if arm.server)
