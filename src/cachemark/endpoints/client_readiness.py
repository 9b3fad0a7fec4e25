"""Asks workers whether their clients can run on this machine, and records the answers.

`cachemark setup` asks each worker once and records its answer in the folder of workers. A recorded
answer holds until something that it depends on changes.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import msgspec

from cachemark.endpoints.clients import Client
from cachemark.host.atomic_file import write_file
from cachemark.model.errors import DECODE_ERRORS, TrialError, UnsupportedError
from cachemark.model.protocol import Ready

_HELLO_S = 20.0
_RECORD = ".clients.json"
# Large folders that a set-up fills. The lock files beside them determine their contents.
_FILLED = frozenset({"node_modules", "target", "gems", "__pycache__"})
# Changes with each package that is installed or removed.
_DEBIAN_PACKAGES = Path("/var/lib/dpkg/status")


_Identity = tuple[str, int, int]


class Readiness(msgspec.Struct, frozen=True):
    """A client's `ready`; or None, with the reason and the remedy."""

    ready: Ready | None
    state: str


class _Recorded(msgspec.Struct, frozen=True):
    fingerprint: str
    readiness: Readiness


def hello_of(client: Client, timeout_s: float) -> Ready:
    """The answer of a client's worker to `hello`. Raises UnsupportedError, TrialError."""
    from cachemark.endpoints.worker import Worker  # noqa: PLC0415 (a recorded answer needs no worker)

    client.require()
    with Worker(client.command, name=client.id) as worker:
        ready = worker.hello(timeout_s)
        worker.bye()
        return ready


def query_worker(client: Client) -> Readiness:
    """Ask the client's worker."""
    try:
        return Readiness(hello_of(client, _HELLO_S), "ready")
    except TrialError as error:
        text = error.text.removeprefix(f"{client.id}: ")
        absent = isinstance(error, UnsupportedError)
        reasons = [text if absent else f"failed: {text}", error.remedy]
        return Readiness(None, ": ".join(filter(None, reasons)))


def query_workers(clients: Iterable[Client], folder: Path) -> Iterator[tuple[Client, Readiness]]:
    """Ask the workers of some clients, a few at once, and record each answer in `folder`.

    Each answer comes as soon as it is there. A record that cannot be written is left out.
    """
    from concurrent.futures import ThreadPoolExecutor, as_completed  # noqa: PLC0415

    recorded = _read(folder)
    with ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 1)) as pool:
        pending = {pool.submit(query_worker, client): client for client in clients}
        for done in as_completed(pending):
            client, readiness = pending[done], done.result()
            recorded[client.id] = _Recorded(_fingerprint(client, readiness, _sources), readiness)
            yield client, readiness
    with contextlib.suppress(OSError):
        write_file(folder / _RECORD, msgspec.json.encode(recorded))


def recorded_readiness(clients: Iterable[Client], folder: Path) -> dict[str, Readiness]:
    """The recorded answers that still hold, by client id."""
    recorded, sources = _read(folder), cache(_sources)
    return {
        client.id: found.readiness
        for client in clients
        if (found := recorded.get(client.id))
        and found.fingerprint == _fingerprint(client, found.readiness, sources)
    }


def _read(folder: Path) -> dict[str, _Recorded]:
    try:
        return msgspec.json.decode((folder / _RECORD).read_bytes(), type=dict[str, _Recorded])
    except (OSError, *DECODE_ERRORS):
        return {}


def _fingerprint(
    client: Client, readiness: Readiness, sources: Callable[[str], list[_Identity]]
) -> str:
    """A digest of everything that the answer of a client's worker depends on.

    These are its program, the files of its folder, cachemark's environment variables and, for a
    client that is not ready, Debian's packages: any new one may make it ready.
    """
    named = [Path(word) for word in (*client.command, client.needs)]
    files = [path for path in named if path.is_absolute()]
    if readiness.ready is None:
        files.append(_DEBIAN_PACKAGES)
    found = [*map(_identity, files), *(sources(client.folder) if client.folder else ())]
    variables = sorted(pair for pair in os.environ.items() if pair[0].startswith("CACHEMARK_"))
    facts = [client.missing(), client.command, variables, found]
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()


def _sources(folder: str) -> list[_Identity]:
    found: list[_Identity] = []
    for parent, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if name not in _FILLED and name[0] != ".")
        found += [_identity(Path(parent, name)) for name in sorted(files)]
    return found


def _identity(path: Path) -> _Identity:
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), found.st_mtime_ns, found.st_size
