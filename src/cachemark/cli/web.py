"""`cachemark web`: serve pages of the runs of a store."""

import importlib.util
import os
import re
import select
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from cyclopts import Parameter

from cachemark.cli.output import print_sentences
from cachemark.cli.standard_streams import flush
from cachemark.host import process
from cachemark.host.placement import beside, cores, run_on, usable_cpus
from cachemark.model.errors import UsageError
from cachemark.report.console import plain_console, print_words
from cachemark.runs.events.log import WEB_PID
from cachemark.runs.storage.store import Run
from cachemark.web.settings import WebSettings, is_loopback, new_token
from cachemark.web.verbs import error_of, verb_command

_PACKAGES = ("starlette", "uvicorn")
_HELP_DRIVE = (
    "show the drive on stdin: cachemark-engine drive … --json-lines | cachemark web --drive"
)
_HELP_TOKEN = "ask for a token on this machine too; other addresses always ask for one"


def web(
    *,
    runs: Annotated[Path, Parameter(help="folder of all runs")] = Path("results"),
    host: Annotated[str, Parameter(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="port to listen on; 0: any free port")] = 5770,
    read_only: Annotated[
        bool, Parameter(help="only show runs: no imports, no measurements")
    ] = False,
    drive: Annotated[bool, Parameter(help=_HELP_DRIVE)] = False,
    trust_commands: Annotated[
        bool, Parameter(help="pages may start runs that name programs and files")
    ] = False,
    token: Annotated[bool, Parameter(help=_HELP_TOKEN)] = False,
    tls_cert: Annotated[Path | None, Parameter(help="certificate for HTTPS (PEM)")] = None,
    tls_key: Annotated[Path | None, Parameter(help="key of the certificate (PEM)")] = None,
) -> None:
    """Serve pages of all runs: search, reports, histories, comparisons, new runs, export, import.

    Only this machine can open them, unless --host names another address. Visitors from elsewhere
    need the printed token.
    """
    check_packages()
    if drive and sys.stdin.isatty():
        raise UsageError(
            "--drive: stdin is a terminal, not a drive",
            "cachemark-engine drive … --json-lines | cachemark web --drive",
        )
    if (tls_cert is None) != (tls_key is None):
        raise UsageError("--tls-cert and --tls-key: one without the other", "name both files")
    for option, path in (("--tls-cert", tls_cert), ("--tls-key", tls_key)):
        if path is not None and not path.is_file():
            raise UsageError(f"{option} {path}: no such file")
    if not 0 <= port <= 65535:
        raise UsageError(f"--port {port}: not a port", "such as --port 5770; 0: any free port")
    # Late, as its packages are an extra.
    from cachemark.web.server import events_of_drive, serve  # noqa: PLC0415

    secret = new_token() if token or not is_loopback(host) else ""
    with events_of_drive(sys.stdin.fileno()) if drive else nullcontext() as events:
        settings = WebSettings(
            root=runs,
            host=host,
            port=port,
            read_only=read_only,
            drive=events,
            trust_commands=trust_commands,
            token=secret,
            tls_cert=tls_cert,
            tls_key=tls_key,
        )
        serve(settings, lambda address: _announce(address, settings))


def _announce(address: str, settings: WebSettings) -> None:
    """Print the address of the pages, and the token that opens them."""
    lines = [f"{settings.root} is shown at {address}/; it ends with Ctrl-C"]
    if settings.drive:
        lines.append(f"the drive is shown at {address}/drive")
    if settings.token:
        lines.append(f"token: {settings.token}")
    if settings.token and settings.scheme == "http" and not is_loopback(settings.host):
        lines.append("the token and all pages travel unencrypted: --tls-cert is advised")
    print_sentences("\n".join(lines))
    flush()


def check_packages() -> None:
    """Refuse to serve pages without their packages. Raises UsageError."""
    if any(importlib.util.find_spec(name) is None for name in _PACKAGES):
        raise UsageError("pages need packages that are an extra", "pip install 'cachemark[web]'")


_START_MS = 60_000
# Viewers still learn how the run ended.
_GRACE_S = 5.0
_ADDRESS = re.compile(rb" is shown at (\S+)/; it ends")


@contextmanager
def pages_of(run: Run) -> Generator[None]:
    """Serve the store of a run, and leave a core to the server. Raises UsageError."""
    usable = usable_cpus()
    measured, cpus = beside(cores(usable))
    command = verb_command("web", f"--runs={run.folder.parent}", "--port=0", "--read-only")
    child = process.start(command, cpus=cpus, stdout=subprocess.PIPE)
    try:
        address = f"{_address(child)}/runs/{quote(run.folder.name)}/live"
        print_words(plain_console(stderr=True), f"shown at {address}")
        os.environ[WEB_PID] = str(child.pid)
        if measured:
            run_on(process.parse_cpus(measured))
        yield
    finally:
        os.environ.pop(WEB_PID, None)
        run_on(usable)
        child.stop(_GRACE_S)


def _address(child: process.Child) -> str:
    """The server's address. Raises UsageError if it does not start."""
    stdout = child.popen.stdout
    assert stdout is not None
    poll = select.poll()
    poll.register(stdout, select.POLLIN)
    match = _ADDRESS.search(stdout.readline()) if poll.poll(_START_MS) else None
    if match is None:
        child.stop()
        raise error_of(child.log_tail(), child.popen.returncode)
    return match[1].decode()
