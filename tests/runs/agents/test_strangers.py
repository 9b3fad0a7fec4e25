"""Another process without the certificates of a run can do nothing with its ports."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from cachemark.runs.agents.coordinator import coordinating
from cachemark.runs.agents.hosts_file import load_hosts
from tests.runs.agents.hosts_files import write_hosts

HOSTS = (("s", "server", "127.0.0.1"), ("c", "client", "127.0.0.2"))
# Commands that every user of the machine could run, with an address and a file of successes.
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


AS_NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")


@pytest.fixture(params=[(), AS_NOBODY], ids=["same user", "another user"])
def user(request: pytest.FixtureRequest) -> Sequence[str]:
    """The first words of a command that a user of the machine runs."""
    words: Sequence[str] = request.param
    if words and os.geteuid():
        pytest.skip("only root can become another user")
    if words and subprocess.run([*words, sys.executable, "-c", ""], check=False).returncode:
        pytest.skip("this Python is in a folder that other users cannot read")
    return words


@pytest.mark.slow("each refused attempt takes seconds")
def test_nobody_without_the_certificates_of_a_run_is_let_in(
    tmp_path: Path, user: Sequence[str]
) -> None:
    """Not to the coordinator, not to an agent; and the keys are readable by their owner alone."""
    path = write_hosts(tmp_path, HOSTS)
    mark = tmp_path / "mark"
    with coordinating(load_hosts(path), path, announce=lambda _: None) as coordinator:
        folder = Path(coordinator.hosts.tls)
        assert folder.stat().st_mode & 0o077 == 0
        assert all(file.stat().st_mode & 0o077 == 0 for file in folder.iterdir())
        if user:
            check_unreadable(user, folder)
        addresses = coordinator.addresses()
        assert len(addresses) == 1 + len(HOSTS)
        for address in addresses:
            assert address.startswith("tls://")
            ended = subprocess.run(
                [*user, sys.executable, "-c", STRANGER, address, str(mark)],
                capture_output=True,
                text=True,
                check=False,
                cwd="/",
            )
            assert "WAS LET IN" not in ended.stdout, ended.stdout
            assert len(ended.stdout.splitlines()) == 4, ended.stderr
        assert not mark.exists()
        coordinator.check()
    assert not folder.exists()


def check_unreadable(user: Sequence[str], folder: Path) -> None:
    """Neither the folder nor one of its files can be read, changed or replaced by this user."""
    files = sorted(folder.iterdir())
    assert files
    attempts = [["ls", folder], ["touch", folder / "new"]]
    attempts += [[verb, *words, file] for file in files for verb, *words in FILE_ATTEMPTS]
    for words in attempts:
        ended = subprocess.run([*user, *words], capture_output=True, text=True, check=False)
        assert ended.returncode, words
        assert "Permission denied" in ended.stderr, (words, ended.stderr)


FILE_ATTEMPTS = (["cat"], ["truncate", "--size=0"], ["rm"])
