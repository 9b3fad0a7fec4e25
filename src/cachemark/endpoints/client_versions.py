"""Other versions of a client's library: `python/pymemcache@3.5.2`, `python/pymemcache@../mine`.

`install_version`, a program of the language's workers, fills a folder in the user's cache: either
with the library alone, which the worker then loads instead of its own, or with a whole worker that
has that library. The worker reports the version that it has loaded.
"""

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec

from cachemark.endpoints.clients import Client, ClientSpec
from cachemark.host.shipped_folders import user_cache
from cachemark.model.errors import UsageError

# A version's number as registries write it; a text with a slash is a path.
_DONE = ".cachemark-installed"


def with_version(spec: ClientSpec, announce: Callable[[str], None]) -> ClientSpec:
    """The client with its version installed. Raises UsageError.

    A source tree and a whole worker are built anew each time, since their sources may have changed.
    """
    if not spec.version:
        return spec
    client, what = spec.client, _what(spec)
    folder = _folder(spec, what)
    if "/" in what or not client.version_path or not (folder / _DONE).exists():
        announce(f"installs {spec.text} into {folder}")
        _install(spec, folder, what)
    return msgspec.structs.replace(
        spec, client=msgspec.structs.replace(client, command=_command(client, folder))
    )


def _command(client: Client, folder: Path) -> list[str]:
    """The command of the worker that loads the library in `folder`, or of the worker there."""
    if client.version_path:
        return ["env", f"{client.version_path}={folder}", *client.command]
    own = Path(client.install_version).parent
    return [
        str(folder / Path(word).relative_to(own)) if Path(word).is_relative_to(own) else word
        for word in client.command
    ]


def _what(spec: ClientSpec) -> str:
    """A version, or the absolute path of a source tree."""
    if "/" not in spec.version and spec.version.strip("."):
        return spec.version
    path = Path(os.path.realpath(os.path.expanduser(spec.version)))  # noqa: PTH111 (never raises)
    if not path.is_dir():
        raise UsageError(f"client {spec.text!r}: {path} is no folder", "name a source tree")
    return str(path)


def _folder(spec: ClientSpec, what: str) -> Path:
    name = hashlib.sha256(what.encode()).hexdigest()[:12] if "/" in what else what
    return user_cache() / "client-versions" / spec.client.id / name


def _install(spec: ClientSpec, folder: Path, what: str) -> None:
    client = spec.client
    runtime = client.id.partition("/")[0]
    command = [client.install_version, str(folder), runtime, client.package, what]
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"client {spec.text!r}: {command[0]}: {error}", client.setup) from error
    if ended.returncode:
        reason = (ended.stderr.strip().splitlines() or ["it says nothing"])[-1].strip()
        raise UsageError(
            f"client {spec.text!r} cannot be installed: {reason}",
            f"the command was: {' '.join(command)}",
        )
    (folder / _DONE).touch()
