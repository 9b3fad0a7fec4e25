"""`embedded`: the engine's own server."""

import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from cachemark.endpoints.servers import login, tls
from cachemark.endpoints.servers.engine_process import EngineProcess, Listening
from cachemark.endpoints.servers.running import Member, RunningServer, wait_ready
from cachemark.endpoints.servers.spec import ServerSpec, check_memory, positive, read_options
from cachemark.host import process
from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import TrialError, UsageError
from cachemark.model.outcome import ServerFacts

_FLAGS = ("io", "threads", "memory", "hash_power", "traffic_log")
OPTIONS = (*_FLAGS, *tls.CLIENT_OPTIONS, *tls.OWN_OPTIONS, "auth")
# The protocols in which it takes logins.
_WIRES = ("text", "meta", "binary")
_IO_MODES = ("events", "blocking", "uring", "busy")
# The store needs a minimum.
_MIN_BYTES = 64 * 1024


def parse(text: str, details: str) -> ServerSpec:
    """Read `embedded:io=blocking,threads=2,memory=64m`. Raises UsageError."""
    options = read_options(text, details, OPTIONS)
    if options.get("io", "events") not in _IO_MODES:
        raise UsageError(
            f"server {text!r}: io={options['io']}", "io is events, blocking, uring or busy"
        )
    if "traffic_log" in options and options.get("io") != "blocking":
        raise UsageError(
            f"server {text!r}: traffic_log needs blocking connections", "add io=blocking"
        )
    spec = ServerSpec(text=text, kind="embedded", details=details, options=options)
    check_memory(spec, least=_MIN_BYTES)
    positive(spec, "threads")
    positive(spec, "hash_power")
    tls.check(text, options)
    login.check(text, options)
    return spec


def missing(_spec: ServerSpec) -> None:
    """Always None: the engine is part of cachemark."""


@contextmanager
def running(spec: ServerSpec, cpus: str, ready_s: float) -> Generator[RunningServer]:
    """Run the server on a port that the system picks. Raises TrialError."""
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        own = tls.of_own(spec.options, spec.listen, folder)
        who = login.of_options(spec.options, _WIRES)
        command = _command(spec, own)
        if who:
            command += ["--auth-file", str(login.written_accounts(who, folder))]
        child = stack.enter_context(
            process.start(command, cpus=cpus, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )
        listening = EngineProcess("embedded", child).answer(Listening, ready_s)
        if listening.io != spec.options.get("io", listening.io):
            raise TrialError(
                f"embedded: the kernel does not offer io_uring, so the server uses {listening.io}"
            )
        address, clients = listening.addresses[0], own and own.clients
        control, version = wait_ready("embedded", address, child, ready_s, tls=clients, login=who)
        facts = ServerFacts(
            kind="embedded", version=version, command=command, address=address, cpus=cpus
        )
        member = Member(name="embedded", control=control, child=child)
        server = RunningServer(listening.addresses, facts, [member], clients, who)
        stack.callback(server.close)
        yield server


def _command(spec: ServerSpec, own: tls.ServerTls | None) -> list[str]:
    listen = f"{spec.listen}:0"
    command = [process.binary_path(), "serve", "--listen", listen, "--stop-with-stdin"]
    for name in _FLAGS:
        if name in spec.options:
            value = spec.options[name]
            bare = name == "memory" and value.isdecimal()
            command += [f"--{name.replace('_', '-')}", f"{value}m" if bare else value]
    if own:
        command += ["--tls-cert", own.cert, "--tls-key", own.key]
    return command
