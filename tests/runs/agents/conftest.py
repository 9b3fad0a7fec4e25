"""Two agents that tests share: an agent takes seconds of CPU time to start.

They serve one coordinator after the other, so each test plays its own run with them.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest

from cachemark.runs.agents.certificates import COORDINATOR, write_certificates
from tests.runs.agents.agents import Agents
from tests.runs.agents.hosts_files import HostRows, write_hosts

TWO_HOSTS = (("both", "server+client", "127.0.0.1"), ("c", "client", "127.0.0.2"))
# No other test listens on this address, so a port that was free stays so.
_COORDINATOR = "127.78.0.1"


class SharedAgents(NamedTuple):
    """The agents `both` and `c`, and the port on which they wait for a coordinator."""

    agents: Agents
    port: int
    certificates: Path

    def hosts_file(
        self, folder: Path, *, hosts: HostRows = TWO_HOSTS, on_lost: str = "stop"
    ) -> Path:
        """Write a hosts file for a run with them."""
        return _write(folder, self.port, hosts, on_lost, self.certificates)


def _write(folder: Path, port: int, hosts: HostRows, on_lost: str, certificates: Path) -> Path:
    with contextlib.suppress(FileExistsError):
        (folder / "certs").symlink_to(certificates)
    return write_hosts(
        folder, hosts, coordinator=_COORDINATOR, port=port, start="there", on_lost=on_lost, tls=True
    )


@pytest.fixture(scope="package")
def shared_agents(tmp_path_factory: pytest.TempPathFactory) -> Generator[SharedAgents]:
    """The agents, for tests in the group `agents`."""
    with socket.create_server((_COORDINATOR, 0)) as probe:
        port = int(probe.getsockname()[1])
    certificates = tmp_path_factory.mktemp("certificates") / "certs"
    write_certificates(certificates, [COORDINATOR, *(name for name, _, _ in TWO_HOSTS)])
    folder = tmp_path_factory.mktemp("agents")
    file = _write(folder, port, TWO_HOSTS, "stop", certificates)
    agents = Agents(
        {
            name: [sys.executable, "-m", "cachemark", "agent", str(file), name]
            for name, _, _ in TWO_HOSTS
        }
    )
    try:
        yield SharedAgents(agents, port, certificates)
    finally:
        agents.stop()
