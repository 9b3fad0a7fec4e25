"""Three hosts on one machine: network namespaces, each with a link to a bridge in a fourth.

A namespace lives as long as a process that holds it, so nothing of it is left behind.
"""

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from cachemark.host import process

COORDINATOR = "10.77.0.1"
_TOOLS = ("unshare", "nsenter", "ip")


class Namespace:
    """A network namespace, held by a process that does nothing."""

    def __init__(self, holder: process.Child) -> None:
        self._holder = holder

    def enter(self, *command: str) -> list[str]:
        """The command line that runs a command inside."""
        return ["nsenter", "-t", str(self._holder.pid), "-n", "--", *command]

    def run(self, text: str) -> None:
        """Run a command inside, and wait for it."""
        subprocess.run(self.enter(*text.split()), check=True, capture_output=True, timeout=60)

    @property
    def pid(self) -> int:
        """The process that holds it."""
        return self._holder.pid

    def processes(self) -> set[int]:
        """The processes inside, but for its holder."""
        inside = Path(f"/proc/{self.pid}/ns/net").readlink()
        return {pid for pid in _pids() if _namespace_of(pid) == inside} - {self.pid}


def _pids() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdecimal()]


def _namespace_of(pid: int) -> Path | None:
    try:
        return Path(f"/proc/{pid}/ns/net").readlink()
    except OSError:
        return None


@contextmanager
def _namespace() -> Generator[Namespace]:
    # The line comes when the namespace is there.
    command = ["unshare", "-n", "--", "sh", "-c", "echo; exec cat"]
    with process.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.popen.stdout is not None
        holder.popen.stdout.readline()
        space = Namespace(holder)
        space.run("ip link set lo up")
        yield space


class Network:
    """The coordinator's namespace, and one for each host, by name."""

    def __init__(self, hub: Namespace, hosts: dict[str, Namespace]) -> None:
        self.hub, self.hosts = hub, hosts

    def cut(self, name: str) -> None:
        """Pull the cable of a host."""
        self.hub.run(f"ip link set v-{name} down")

    def mend(self, name: str) -> None:
        """Put the cable back."""
        self.hub.run(f"ip link set v-{name} up")


def address_of(number: int) -> str:
    """The address of the host of this number, from 0."""
    return f"10.77.0.{11 + number}"


@contextmanager
def network(names: tuple[str, ...]) -> Generator[Network]:
    """Make the namespaces and their links. Skips the test where this is not allowed."""
    if os.geteuid() != 0 or not all(map(shutil.which, _TOOLS)):
        pytest.skip(f"network namespaces need root and the programs {', '.join(_TOOLS)}")
    with ExitStack() as stack:
        hub = stack.enter_context(_namespace())
        hosts = {name: stack.enter_context(_namespace()) for name in names}
        try:
            hub.run("ip link add br0 type bridge")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"the kernel has no bridge: {error.stderr!r}")
        hub.run(f"ip address add {COORDINATOR}/24 dev br0")
        hub.run("ip link set br0 up")
        for number, (name, host) in enumerate(hosts.items()):
            hub.run(f"ip link add v-{name} type veth peer name eth0 netns {host.pid}")
            hub.run(f"ip link set v-{name} master br0 up")
            host.run(f"ip address add {address_of(number)}/24 dev eth0")
            host.run("ip link set eth0 up")
            host.run(f"ip route add default via {COORDINATOR}")
        yield Network(hub, hosts)
