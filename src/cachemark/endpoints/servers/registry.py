"""The table of server kinds. To add a kind: a file beside this one, and a row here."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import msgspec

from cachemark.endpoints.servers import (
    cluster,
    command,
    distant,
    embedded,
    login,
    memcached,
    no_server,
    nutcracker,
    quickcached,
    remote,
    third_party,
)
from cachemark.endpoints.servers.running import RunningServer
from cachemark.endpoints.servers.spec import (
    MEMORY_OPTION,
    MemoryModel,
    Missing,
    ServerSpec,
    memory_bytes,
)
from cachemark.endpoints.servers.tls_tunnel import unencrypted
from cachemark.model.errors import UsageError, similar_name

_READY_S = 10.0
# The memory of a server that is soon full.
_SMALL_MEMORY = "16m"


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of server, and the functions that parse, check and run it.

    `form` is the syntax in an experiment, `simplest_form` an example if the name alone is not
    enough. `setup` is the program, in this folder, that builds the server on demand.
    `memory` is how items fill the server, if it has the option `memory`. `io` is the name of the
    option that selects the I/O mode (`blocking`, `events` …).
    """

    name: str
    summary: str
    form: str
    parse: Callable[[str, str], ServerSpec]
    missing: Callable[[ServerSpec], Missing | None]
    running: Callable[[ServerSpec, str, float], AbstractContextManager[RunningServer]]
    note: str = ""
    simplest_form: str = ""
    setup: str = ""
    memory: MemoryModel | None = None
    io: str = ""


def _alone(server: Any, **facts: Any) -> Kind:
    """A kind without other servers behind; `server` has its functions."""
    return Kind(parse=server.parse, missing=server.missing, running=server.running, **facts)


_KINDS = (
    _alone(
        embedded,
        name="embedded",
        summary="the engine's own server",
        form="embedded[:io=events|blocking|uring|busy,threads=N,memory=64m,hash_power=N,tls=yes,auth=USER:FILE,traffic_log=FILE]",
        memory=MemoryModel(item_bytes=20, rounding=1.05),
        io="io",
    ),
    _alone(
        memcached,
        name="memcached",
        summary="memcached on PATH",
        form="memcached[:threads=N,memory=64m,connections=N,unix=yes,verbose=N,binary=/path,tls=yes|mutual,auth=USER:FILE,sasl=yes]",
        memory=MemoryModel(),
    ),
    *(
        _alone(
            one,
            name=one.name,
            summary=one.summary,
            form=one.form,
            note=one.note,
            setup=one.setup,
            memory=one.memory,
        )
        for one in third_party.third_party_servers()
    ),
    _alone(
        quickcached,
        name="quickcached",
        summary="QuickCached (Java)",
        form=quickcached.FORM,
        note="2.0.2 runs blocking whatever its mode says",
        io="mode",
    ),
    Kind(
        name="nutcracker",
        summary="twemproxy before a server",
        form="nutcracker:SERVER",
        simplest_form="nutcracker:embedded",
        parse=lambda text, details: nutcracker.parse(text, details, parse_spec),
        missing=lambda spec: nutcracker.missing(missing(cluster.inner_of(spec))),
        running=lambda spec, cpus, ready_s: nutcracker.running(spec, cpus, ready_s, _start),
    ),
    _alone(
        command,
        name="command",
        summary="any server that takes its port on the command line",
        form="command:PROGRAM ARGS {port}",
    ),
    _alone(
        remote,
        name="remote",
        summary="one or several that run already, here or elsewhere",
        form="remote:HOST:PORT[,HOST:PORT…][,tls=yes,auth=USER:FILE] or remote:unix:/path",
    ),
    Kind(
        name="cluster",
        summary="several servers of one kind as one target",
        form="cluster:N:SERVER",
        simplest_form="cluster:2:embedded",
        parse=lambda text, details: cluster.parse(text, details, parse_spec),
        missing=lambda spec: missing(cluster.inner_of(spec)),
        running=lambda spec, cpus, ready_s: cluster.running(spec, cpus, ready_s, _start),
    ),
    Kind(
        name="distant",
        summary="a server at a distance: a proxy adds the round trip",
        form="distant:TIME:SERVER",
        simplest_form="distant:1ms:embedded",
        parse=lambda text, details: distant.parse(text, details, parse_spec),
        missing=lambda spec: missing(cluster.inner_of(spec)),
        running=lambda spec, cpus, ready_s: distant.running(spec, cpus, ready_s, _start),
    ),
    _alone(
        no_server,
        name="none",
        summary="no server: for caches in the worker's own process",
        form="none",
    ),
)


def readiness(kind: Kind) -> str:
    """`ready`, or what is missing here. `–`: the kind needs an address, so this is unknown."""
    try:
        lacking = kind.missing(parse_spec(kind.simplest_form or kind.name))
    except UsageError:
        return "–"
    return f"{lacking.reason}: {lacking.remedy}" if lacking else "ready"


def kinds() -> tuple[Kind, ...]:
    """All kinds."""
    return _KINDS


def parse_spec(text: str) -> ServerSpec:
    """Read a server as an experiment names it. Raises UsageError."""
    name, _, details = text.partition(":")
    return _kind(name).parse(text, details)


def missing(spec: ServerSpec) -> Missing | None:
    """Why a server cannot be started on this machine; None if nothing is known to be missing."""
    return _kind(spec.kind).missing(spec)


def with_small_memory(spec: ServerSpec) -> ServerSpec | None:
    """The same server with little memory, without a proxy or cluster; None if it has no limit."""
    return with_memory(spec, _SMALL_MEMORY)


def with_memory(spec: ServerSpec, memory: str) -> ServerSpec | None:
    """The same server with this memory, without a proxy or cluster; None if it has no limit."""
    if spec.inner is not None:
        return with_memory(spec.inner, memory)
    if _kind(spec.kind).memory is None:
        return None
    options = {**spec.options, MEMORY_OPTION: memory}
    return parse_spec(
        f"{spec.kind}:" + ",".join(f"{name}={value}" for name, value in options.items())
    )


def listening_on(spec: ServerSpec, address: str) -> ServerSpec:
    """The same server, and all servers behind it, on another address of this machine.

    Raises UsageError for a Unix socket, which other hosts cannot reach, and for a login, since they
    do not have the password.
    """
    if "auth" in spec.options:
        raise UsageError(
            f"server {spec.text!r}: no logins from several hosts",
            "leave auth out, or measure logins from one host: `cachemark run` without --hosts",
        )
    if spec.options.get("unix") == "yes":
        raise UsageError(
            f"server {spec.text!r}: other hosts cannot reach a Unix socket", "leave unix=yes out"
        )
    inner = spec.inner and listening_on(spec.inner, address)
    return msgspec.structs.replace(spec, listen=address, inner=inner)


class MemoryLimit(msgspec.Struct, frozen=True, kw_only=True):
    """The memory limit of a server, of all members together, and how items fill it."""

    limit_bytes: int
    members: int
    model: MemoryModel


def memory_limit(spec: ServerSpec) -> MemoryLimit | None:
    """The memory limit that a server is started with; None if it is not known."""
    if spec.inner is not None:
        inner = memory_limit(spec.inner)
        return inner and msgspec.structs.replace(
            inner, limit_bytes=spec.count * inner.limit_bytes, members=spec.count * inner.members
        )
    model = _kind(spec.kind).memory
    if model is None:
        return None
    text = spec.options.get(MEMORY_OPTION, model.default)
    return MemoryLimit(limit_bytes=memory_bytes(text), members=1, model=model)


def io_mode(spec: ServerSpec) -> str:
    """The I/O mode in the spec: `blocking`, `events`, `uring` or `busy`; empty if it names none."""
    if spec.inner is not None:
        return io_mode(spec.inner)
    option = _kind(spec.kind).io
    return spec.options.get(option, "") if option else ""


def running(
    spec: ServerSpec, *, cpus: str = "", ready_s: float = _READY_S
) -> AbstractContextManager[RunningServer]:
    """Run a server on a set of CPUs until it answers; the end of the context stops it.

    Raises TrialError or UnsupportedError on entering.
    """
    return _start(spec, cpus, ready_s)


@contextmanager
def running_unencrypted(spec: ServerSpec, *, cpus: str = "") -> Generator[RunningServer]:
    """Run a server at addresses that need no TLS and no login. Never time it there."""
    with running(_without_login(spec), cpus=cpus) as server, unencrypted(server) as open_server:
        yield open_server


def _without_login(spec: ServerSpec) -> ServerSpec:
    """The same server without accounts, if cachemark starts it."""
    if spec.kind == "remote":
        return spec
    options = {name: value for name, value in spec.options.items() if name not in login.OPTIONS}
    inner = spec.inner and _without_login(spec.inner)
    return msgspec.structs.replace(spec, options=options, inner=inner)


def _start(spec: ServerSpec, cpus: str, ready_s: float) -> AbstractContextManager[RunningServer]:
    return _kind(spec.kind).running(spec, cpus, ready_s)


def _kind(name: str) -> Kind:
    known = {kind.name: kind for kind in _KINDS}
    if name not in known:
        raise UsageError(
            f"no kind of server {name!r}", f"{similar_name(name, known)}kinds: {', '.join(known)}"
        )
    return known[name]
