"""Whatever breaks an agent, in whichever phase: its trial fails, and the other hosts stop."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from cachemark.model.errors import HostLostError
from cachemark.model.experiment import Load
from cachemark.model.hosts import left_after
from cachemark.runs.agents.certificates import COORDINATOR as COORDINATOR_NAME
from cachemark.runs.agents.certificates import write_certificates
from cachemark.runs.agents.hosts_file import load_hosts
from tests.conftest import ROOT
from tests.runs.agents import kill_matrix
from tests.runs.agents.conftest import TWO_HOSTS, SharedAgents
from tests.runs.agents.hosts_files import write_hosts
from tests.runs.agents.kill_matrix import CLOSED, OPEN, Result, breaking, setting_of, stage
from tests.runs.agents.namespaces import COORDINATOR, address_of, network

_MATRIX_S = 500


@pytest.mark.slow("eight times, a host is lost after 6 s")
def test_every_break_in_every_phase(tmp_path: Path) -> None:
    names = ("s", "c")
    with network(names) as net:
        hosts = tuple(
            (name, "server" if name == "s" else "client", address_of(number))
            for number, name in enumerate(names)
        )
        file = write_hosts(
            tmp_path, hosts, coordinator=COORDINATOR, port=8786, start="there", tls=True
        )
        cachemark = (sys.executable, "-m", "cachemark")
        write_certificates(tmp_path / "certs", [COORDINATOR_NAME, *names])
        agents = {
            name: net.hosts[name].enter(*cachemark, "agent", str(file), name) for name in names
        }
        ended = subprocess.run(
            net.hub.enter(
                sys.executable,
                "-m",
                kill_matrix.__name__,
                str(file),
                msgspec.json.encode(agents).decode(),
            ),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=_MATRIX_S,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    results = [msgspec.json.decode(line, type=Result) for line in ended.stdout.splitlines()]
    assert [result.row for result in results] == list(kill_matrix.ROWS)
    for result in results:
        assert result.state == "failed", result
        assert result.reason.startswith(f"{result.row.who}: the agent is lost: "), result
        assert result.left == [], result


@pytest.mark.xdist_group("agents")
def test_a_run_goes_on_without_a_lost_host(shared_agents: SharedAgents, tmp_path: Path) -> None:
    """An open loop does; a closed one would be another load, so there the run stops."""
    agents = shared_agents.agents
    file = shared_agents.hosts_file(tmp_path, on_lost="continue")
    with (
        setting_of(OPEN) as open_loop,
        setting_of(CLOSED) as closed_loop,
        breaking("measure", lambda: agents.kill("c")),
        stage(file) as place,
    ):
        broken = place.run_trial(open_loop, lambda _: None)
        assert agents.processes("both") == []
        with pytest.raises(HostLostError):
            place.run_trial(closed_loop, lambda _: None)
        after = place.run_trial(open_loop, lambda _: None)
    agents.start_again("c")
    assert broken.state == "failed"
    assert broken.reason.startswith("c: the agent is lost: ")
    assert after.state == "measured", after.reason
    assert [part.name for part in after.hosts] == ["both"]
    assert "played without c: lost in this run" in after.notes


@pytest.mark.parametrize(
    ("on_lost", "lost", "load", "left"),
    [
        ("continue", ["c"], OPEN, ["both"]),
        ("stop", ["c"], OPEN, None),
        ("continue", ["c"], CLOSED, None),
        ("continue", ["both"], OPEN, None),
    ],
)
def test_which_hosts_a_run_goes_on_with(
    tmp_path: Path, on_lost: str, lost: list[str], load: Load, left: list[str] | None
) -> None:
    hosts = load_hosts(write_hosts(tmp_path, TWO_HOSTS, on_lost=on_lost))
    found = left_after(hosts, lost, load)
    assert (found and [host.name for host in found.hosts]) == left
