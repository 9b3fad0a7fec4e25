"""`memcached`: the program on PATH, or at the path in the option `binary`."""

import os
import resource
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from cachemark.endpoints.servers import login, tls
from cachemark.endpoints.servers.running import Member, RunningServer, exited_error, wait_ready
from cachemark.endpoints.servers.spec import (
    LOOPBACK,
    Missing,
    ServerSpec,
    check_memory,
    memory_mib,
    positive,
    read_options,
)
from cachemark.host import process
from cachemark.host.temporary import temporary_folder, temporary_socket
from cachemark.model.errors import TrialError, UsageError
from cachemark.model.outcome import ServerFacts
from cachemark.model.units import MIB

_FLAGS = {"threads": "-t", "memory": "-m", "connections": "-c"}
_OTHERS = ("unix", "verbose", "binary", *login.OPTIONS)
OPTIONS = (*_FLAGS, *_OTHERS, *tls.CLIENT_OPTIONS, *tls.OWN_OPTIONS)
_VERBOSE = ("1", "2", "3")
_LISTENING = "TCP INET: "
REMEDY = "apt-get install memcached"
_RETRY_S = 0.005
_DEFAULT_CONNECTIONS = 1024


def parse(text: str, details: str) -> ServerSpec:
    """Read `memcached:threads=4,memory=1g`. Raises UsageError."""
    options = read_options(text, details, OPTIONS)
    spec = ServerSpec(text=text, kind="memcached", details=details, options=options)
    positive(spec, "threads")
    positive(spec, "connections")
    check_memory(spec, least=MIB)
    if options.get("verbose", "1") not in _VERBOSE:
        raise UsageError(f"server {text!r}: verbose={options['verbose']}", "verbose is 1, 2 or 3")
    if options.get("unix", "no") not in ("yes", "no"):
        raise UsageError(f"server {text!r}: unix={options['unix']}", "unix is yes or no")
    tls.check(text, options, (tls.YES, tls.MUTUAL))
    login.check(text, options)
    return spec


def missing(spec: ServerSpec) -> Missing | None:
    """Why memcached cannot be started here; None if it can."""
    program = _program(spec)
    if shutil.which(program):
        return None
    remedy = f"binary={program} must be a program" if "binary" in spec.options else REMEDY
    what = "cannot be executed" if Path(program).is_file() else "is not on this machine"
    return Missing(reason=f"{program} {what}", remedy=remedy)


@contextmanager
def running(spec: ServerSpec, cpus: str, ready_s: float) -> Generator[RunningServer]:
    """Run memcached on a port that the system picks, or on a Unix socket.

    Raises TrialError, UnsupportedError.
    """
    if absent := missing(spec):
        raise absent.error()
    at = temporary_socket() if spec.options.get("unix") == "yes" else nullcontext()
    with temporary_folder() as folder, at as socket:
        # memcached writes the port on which it listens into this file.
        ports = folder / "ports"
        env = {"MEMCACHED_PORT_FILENAME": str(ports)}
        own = tls.of_own(spec.options, spec.listen, folder)
        who = login.of_options(spec.options)
        command = _command(spec, socket, own)
        if who and who.sasl:
            command.append("-S")
            env |= login.sasl_environment(who, folder)
        elif who:
            command += ["-Y", str(login.written_accounts(who, folder))]
        with process.start(command, cpus=cpus, env=env) as child:
            address = control_address = f"unix:{socket}"
            if socket is None:
                control_port, port = _ports(2 if own else 1, ports, child, ready_s)
                address = f"{spec.listen}:{port}"
                control_address = f"{LOOPBACK}:{control_port}" if own else address
            control, version = wait_ready("memcached", control_address, child, ready_s, login=who)
            facts = ServerFacts(
                kind="memcached", version=version, command=command, address=address, cpus=cpus
            )
            member = Member(name="memcached", control=control, child=child)
            server = RunningServer([address], facts, [member], own and own.clients, who)
            try:
                yield server
            finally:
                server.close()
                # SIGKILL: it has nothing to save, and takes up to a second to notice a SIGTERM.
                child.stop(grace_s=0)


def _program(spec: ServerSpec) -> str:
    return spec.options.get("binary", "memcached")


def _listening(spec: ServerSpec, socket: Path | None, own: tls.ServerTls | None) -> list[str]:
    """Where it listens; with a Unix socket there is no port. Port -1: the system picks one."""
    if socket:
        return ["-s", str(socket)]
    if own is None:
        return ["-l", spec.listen, "-p", str(spec.port or -1), "-U", "0"]
    # The control connection is not encrypted, and has a port of its own.
    encrypted = f"{spec.listen}:{spec.port}" if spec.port else spec.listen
    files = f"ssl_chain_cert={own.cert},ssl_key={own.key}"
    if own.client_ca:
        files += f",ssl_ca_cert={own.client_ca},ssl_verify_mode=2"
    return ["-l", f"notls:{LOOPBACK},{encrypted}", "-p", "-1", "-U", "0", "-Z", "-o", files]


def _command(spec: ServerSpec, socket: Path | None, own: tls.ServerTls | None) -> list[str]:
    command = [_program(spec), *_listening(spec, socket, own), *_for_this_user(spec)]
    for name, flag in _FLAGS.items():
        if name in spec.options:
            value = spec.options[name]
            command += [flag, str(memory_mib(value)) if name == "memory" else value]
    if "verbose" in spec.options:
        command.append("-" + "v" * int(spec.options["verbose"]))
    return command


def _for_this_user(spec: ServerSpec) -> list[str]:
    """The arguments that memcached needs to start as this user."""
    # As root it runs only with -u.
    words = ["-u", "root"] if os.geteuid() == 0 else []
    # It exits if the limit of open files is below its limit of connections.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if "connections" not in spec.options and resource.RLIM_INFINITY != most < _DEFAULT_CONNECTIONS:
        words += [_FLAGS["connections"], str(most)]
    return words


def _ports(count: int, path: Path, child: process.Child, ready_s: float) -> tuple[int, int]:
    """The ports of the control connection and of clients; without TLS they are the same."""
    deadline = time.monotonic() + ready_s
    while time.monotonic() < deadline:
        if child.exited() is not None:
            raise exited_error("memcached", child)
        text = path.read_text() if path.exists() else ""
        listening = [line for line in text.splitlines() if line.startswith(_LISTENING)]
        ports = [int(line.removeprefix(_LISTENING)) for line in listening]
        if len(ports) == count:
            return ports[0], ports[-1]
        time.sleep(_RETRY_S)
    raise TrialError(f"memcached: not listening after {ready_s:g} s")
