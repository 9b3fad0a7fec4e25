"""A host name that only one process and its descendants know, and whose address can change.

The process has a mount namespace, and in it an /etc/hosts of its own. A user namespace makes this
possible without privilege.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

NAME = "cachemark-server.test"  # RFC 6761 reserves .test
_NAMESPACE = ("unshare", "--map-root-user", "--mount")
_HOSTS = Path("/etc/hosts")
_TRY_S = 10.0


def private_names_missing() -> str:
    """Why this machine cannot have private names; empty if it can."""
    if shutil.which(_NAMESPACE[0]) is None:
        return "unshare is not on this machine (apt-get install util-linux)"
    command = [*_NAMESPACE, "mount", "--bind", str(_HOSTS), str(_HOSTS)]
    tried = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TRY_S)
    return f"no mount namespace: {tried.stderr.strip()}" if tried.returncode else ""


class PrivateName:
    """The name, pointing to an IPv4 address; its hosts file is in a folder."""

    def __init__(self, folder: Path, address: str) -> None:
        self._file = folder / "hosts"
        self._file.write_text(self._hosts(address))

    def command(self, command: list[str]) -> list[str]:
        """A command that runs another one, which then knows the name."""
        mount = f'mount --bind "$0" {_HOSTS} && exec "$@"'
        return [*_NAMESPACE, "sh", "-c", mount, str(self._file), *command]

    def point_to(self, address: str) -> None:
        """Let the name resolve to another address from now on."""
        # In place, because the mount is of this file; in one write, which no reader sees a part of.
        text = self._hosts(address).encode()
        with self._file.open("r+b", buffering=0) as file:
            file.write(text)
            file.truncate(len(text))

    @staticmethod
    def _hosts(address: str) -> str:
        # The name is last, and every line ends: a resolver never reads a part of an old line.
        return f"{_HOSTS.read_text().rstrip()}\n{address} {NAME}\n"
