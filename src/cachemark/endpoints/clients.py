"""The registry of the clients that can be measured.

Each folder in `workers/` declares its clients in a `worker.toml`, with the command that starts each
runtime. A client's id is `runtime/name`, such as `python/pymemcache`; the native client is
`native`.
"""

import shlex
import shutil
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from cachemark.host.shipped_folders import writable_folder
from cachemark.model.client_name import NATIVE, parse_client_name
from cachemark.model.errors import UnsupportedError, UsageError, refusing, similar_name

# Clients that no pattern matches: the native client, and clients without a library.
_NULL = "null"
_NO_LIBRARIES = frozenset({"", _NULL, "socket"})

Concurrency = Literal["threads", "processes", "forks", "tasks"]


class ClientFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A client's row in `worker.toml`; `Client` explains the fields."""

    home: str = ""
    note: str = ""
    defaults: str = ""
    tuned: str = ""
    lacks: str = ""
    released: str = ""
    in_process: bool = False
    concurrency: Concurrency = "threads"
    package: str = ""


class Client(ClientFacts, frozen=True, kw_only=True):
    """A client, and the command that starts its worker.

    `folder` has the worker's sources; empty for the engine's own clients. `in_process`: a cache
    inside the worker's own process; it has no server. `concurrency` says how several callers are
    run: as threads or tasks of one worker, as forks of one worker, or as processes, each with its
    own worker. `needs` is a file that set-up creates; `setup` is the command that does so.
    `defaults` says, in words, how the library's own settings differ from those that all clients
    share; empty if they do not, or if this is not known. `tuned` says which settings the library's
    documents recommend; empty if they recommend none. `lacks` says why the client has no TLS or no
    logins. `install_version` is the program that installs another version of `package`, and
    `version_path` the environment variable in which the worker then finds it; without one, it makes
    a whole worker. `counting_allocator` is a library that counts allocations if it is loaded first.
    `sampler` is `perf` if the worker has no sampler of its own that sees more.
    `problem` is why the `worker.toml` cannot be read: such a file becomes one client without a
    command, so that other languages still work.
    """

    id: str
    language: str
    command: list[str]
    folder: str = ""
    packages: list[str] = []
    needs: str = ""
    setup: str = ""
    install_version: str = ""
    version_path: str = ""
    counting_allocator: str = ""
    sampler: str = ""
    problem: str = ""

    def missing(self) -> str:
        """Why the client cannot be started here; empty if it can."""
        if self.problem:
            return self.problem
        if self.needs and not Path(self.needs).exists():
            return f"{self.id}: {Path(self.needs).name} of its runtime is not set up"
        program = self.command[0]
        if shutil.which(program) is None:
            return f"{self.id}: {program} is not on this machine"
        return ""

    def require(self, refusal: type[UsageError | UnsupportedError] = UnsupportedError) -> None:
        """Raise `refusal` if the client cannot be started here."""
        if missing := self.missing():
            raise refusal(missing, self.setup)


class ClientSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A client as an experiment names it, with its options.

    `text` is one of `id`, `id?option=value&…`, `id@defaults` (the library's own settings),
    `id@VERSION` or `id@PATH` (another version or a build of the library, see
    client_versions.py), and `command:PROGRAM ARGS` (any worker). `version` is empty for the
    library that is set up.
    """

    text: str
    client: Client
    options: dict[str, str] = {}
    version: str = ""


NETWORK = "network"
# The engine's own clients: the target of `cachemark-engine worker`, its concurrency, a note.
_NATIVE: list[tuple[str, Concurrency, str]] = [
    (NETWORK, "threads", "pipelines, open loop, any number of connections"),
    ("store", "threads", "the embedded server's store, in its own process: memory, hash_power"),
    ("shm", "processes", "the same in memory that processes share; a thread is one of them"),
]


class _Runtime(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    command: list[str]
    needs: str = ""
    setup: str = ""
    install_version: str = ""
    version_path: str = ""
    counting_allocator: str = ""
    sampler: str = ""


class _Entry(ClientFacts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    runtimes: list[str]


class WorkerFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of a `worker.toml`."""

    language: str
    packages: list[str] = []
    runtime: dict[str, _Runtime]
    client: list[_Entry]


_decoded = lru_cache(maxsize=64)(partial(msgspec.toml.decode, type=WorkerFile))


def workers_folder() -> Path:
    """The folder `workers`: $CACHEMARK_WORKERS, in the checkout, or in the user's cache."""
    return writable_folder("workers", "CACHEMARK_WORKERS")


def registry(engine: str, folder: Path | None = None) -> dict[str, Client]:
    """Every client by id; `engine` is the path of cachemark-engine.

    An unreadable `worker.toml` becomes a client that is missing. Raises UsageError if there is no
    folder of workers.
    """
    clients = [_native(engine, *row) for row in _NATIVE]
    for path in sorted((folder or workers_folder()).glob("*/worker.toml")):
        clients += _read(path)
    return {client.id: client for client in clients}


def default_settings(folder: Path | None = None) -> dict[str, str]:
    """How each library's own settings differ from the common ones, by client id; may be empty."""
    try:
        known = registry("", folder)
    except UsageError:
        return {}
    return {client.id: client.defaults for client in known.values() if client.defaults}


def _native(engine: str, target: str, concurrency: Concurrency, note: str) -> Client:
    network = target == NETWORK
    return Client(
        id=NATIVE if network else f"{NATIVE}/{target}",
        language="rust",
        command=[engine, "worker", target],
        note=note,
        in_process=not network,
        concurrency=concurrency,
        sampler="perf",
    )


def read_worker_file(path: Path) -> WorkerFile:
    """Read a `worker.toml`. Raises UsageError."""
    with refusing(str(path), "see CONTRIBUTING.md, `Add a client`", decodes=True):
        return _decoded(path.read_bytes())


def _read(path: Path) -> list[Client]:
    try:
        declared = read_worker_file(path)
    except UsageError as error:
        name = path.parent.name
        return [
            Client(
                id=f"{name}/{path.name}",
                language=name,
                command=[],
                problem=error.text,
                setup=error.remedy,
            )
        ]
    return [
        _client(path.parent, declared, entry, name)
        for entry in declared.client
        for name in entry.runtimes
        if name in declared.runtime
    ]


def _client(folder: Path, declared: WorkerFile, entry: _Entry, runtime_name: str) -> Client:
    runtime = declared.runtime[runtime_name]
    facts: dict[str, Any] = {name: getattr(entry, name) for name in ClientFacts.__struct_fields__}
    facts["package"] = entry.package or entry.name
    return Client(
        **facts,
        id=f"{runtime_name}/{entry.name}" if entry.name else runtime_name,
        language=declared.language,
        folder=str(folder),
        command=[
            _absolute(folder, part).replace("{client}", entry.name) for part in runtime.command
        ],
        packages=declared.packages,
        needs=_inside(folder, runtime.needs),
        setup=runtime.setup,
        install_version=_inside(folder, runtime.install_version),
        version_path=runtime.version_path,
        counting_allocator=_inside(folder, runtime.counting_allocator),
        sampler=runtime.sampler,
    )


def _inside(folder: Path, name: str) -> str:
    return str(folder / name) if name else ""


def _absolute(folder: Path, part: str) -> str:
    """Make a word of a command absolute if it is a path inside the folder."""
    inside = folder / part
    return str(inside) if "/" in part or inside.exists() else part


def matching_clients(texts: Iterable[str], known: dict[str, Client]) -> tuple[str, ...]:
    """The clients with patterns such as `go/*` replaced by the libraries that match.

    Raises UsageError for a pattern that no library matches, and for a client that is named twice.
    """
    names: list[str] = []
    texts = list(texts)
    if twice := next((text for text in texts if texts.count(text) > 1), None):
        remedy = (
            f"name it once; `cachemark run --client {twice} --set twice={twice}` plays it twice"
        )
        raise UsageError(f"client {twice!r} is named twice", remedy)
    for text in texts:
        if "*" not in text or text.startswith("command:"):
            names.append(text)
            continue
        libraries = [
            client.id
            for client in known.values()
            if not client.in_process
            and client.id.partition("/")[2] not in _NO_LIBRARIES
            and fnmatchcase(client.id, text)
        ]
        if not libraries:
            raise UsageError(f"no client matches {text!r}", "`cachemark clients` lists them")
        names += libraries
    return tuple(dict.fromkeys(names))


def parse_client(text: str, known: dict[str, Client]) -> ClientSpec:
    """Read a client as an experiment names it. Raises UsageError with the most similar id."""
    if text.startswith("command:"):
        try:
            words = shlex.split(text.removeprefix("command:"))
        except ValueError as error:
            raise UsageError(f"client {text!r}: {error}", "check the quotes") from error
        if not words:
            raise UsageError(f"client {text!r}: no command", 'write command:"PROGRAM ARGS"')
        return ClientSpec(text=text, client=Client(id=text, language="", command=words))
    named = parse_client_name(text)
    name, version = named.id, named.version
    profile = {"profile": "defaults"} if named.own_settings else {}
    if name not in known:
        broken = [client.problem for client in known.values() if client.problem]
        raise UsageError(
            f"no client {name!r}" + "".join(f"; {problem}" for problem in broken),
            f"{similar_name(name, known)}`cachemark clients` lists {len(known)} of them",
        )
    client = known[name]
    if version and not client.install_version:
        languages = sorted({of.language for of in known.values() if of.install_version})
        raise UsageError(
            f"client {text!r}: versions can be chosen for libraries of {', '.join(languages)} only",
            'name the worker of another checkout: command:"PROGRAM ARGS"',
        )
    return ClientSpec(
        text=text, client=client, options=profile | _options(text, named.options), version=version
    )


def _options(text: str, tail: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for pair in filter(None, tail.split("&")):
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"client {text!r}: {pair!r} is not an option", "write option=value")
        options[key] = value
    return options
