"""Other versions of a client's library: `python/pymemcache@3.5.2`, `python/pymemcache@../mine`.

Each is installed into a folder of its own in the user's cache, and its worker finds it before the
one that is set up. The worker reports the version that it really loaded.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec

from cachemark.endpoints.clients import ClientSpec
from cachemark.host.user_cache import user_cache
from cachemark.model.errors import UsageError

# The version's number as registries write it; what has a slash is a path.
_DONE = ".cachemark-installed"


def with_version(spec: ClientSpec, announce: Callable[[str], None]) -> ClientSpec:
    """The client with its version installed; a path is built anew each time. Raises UsageError."""
    if not spec.version:
        return spec
    client, what = spec.client, _what(spec)
    folder = _folder(spec, what)
    if "/" in what or not (folder / _DONE).exists():
        announce(f"installs {spec.text} into {folder}")
        _install(spec, folder, what)
    setting = f"{client.version_path}={folder}"
    return msgspec.structs.replace(
        spec,
        client=msgspec.structs.replace(client, command=["env", setting, *client.command]),
    )


def _what(spec: ClientSpec) -> str:
    """A version, or the absolute path of a source tree."""
    if "/" not in spec.version:
        return spec.version
    path = Path(spec.version).expanduser().resolve()
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
