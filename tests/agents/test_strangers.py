"""Another process without the certificates of a run can do nothing with its ports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cachemark.agents.coordinator import coordinating
from cachemark.agents.hosts_file import load_hosts
from tests.agents.hosts_files import write_hosts

HOSTS = (("s", "server", "127.0.0.1"), ("c", "client", "127.0.0.2"))
# What every user of the machine could run, with an address, and a file that shows a success.
STRANGER = """
import asyncio, pathlib, sys
from distributed import Client
from distributed.core import rpc
from distributed.security import Security

address, mark = sys.argv[1], sys.argv[2]

def touch(dask_scheduler=None):
    pathlib.Path(mark).touch()

async def direct(security):
    connection = rpc(address, connection_args=security.get_connection_args("client"))
    await asyncio.wait_for(connection.identity(), 3)
    pathlib.Path(mark).touch()

for scheme, security in (("tcp", Security()), ("tls", Security.temporary())):
    address = scheme + address[address.index("://"):]
    for attempt in (
        lambda: Client(address, timeout=3, security=security).run_on_scheduler(touch),
        lambda: asyncio.run(direct(security)),
    ):
        try:
            attempt()
        except BaseException as error:
            print(scheme, type(error).__name__)
        else:
            print(scheme, "WAS LET IN")
"""


@pytest.mark.slow("each refused attempt takes seconds")
def test_nobody_without_the_certificates_of_a_run_is_let_in(tmp_path: Path) -> None:
    """Not to the coordinator, not to an agent; and the keys are readable by their owner alone."""
    path = write_hosts(tmp_path, HOSTS)
    mark = tmp_path / "mark"
    with coordinating(load_hosts(path), path, announce=lambda _: None) as coordinator:
        folder = Path(coordinator.hosts.tls)
        assert folder.stat().st_mode & 0o077 == 0
        assert all(file.stat().st_mode & 0o077 == 0 for file in folder.iterdir())
        addresses = coordinator.addresses()
        assert len(addresses) == 1 + len(HOSTS)
        for address in addresses:
            assert address.startswith("tls://")
            ended = subprocess.run(
                [sys.executable, "-c", STRANGER, address, str(mark)],
                capture_output=True,
                text=True,
                check=False,
            )
            assert "WAS LET IN" not in ended.stdout, ended.stdout
            assert len(ended.stdout.splitlines()) == 4, ended.stderr
        assert not mark.exists()
        coordinator.check()
    assert not folder.exists()
