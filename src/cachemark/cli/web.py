"""`cachemark web`: serve pages of the runs of a store."""

import importlib.util
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachemark.cli.output import print_text
from cachemark.cli.standard_streams import flush
from cachemark.model.errors import UsageError
from cachemark.web.settings import WebSettings, is_loopback, new_token

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
        bool, Parameter(negative="", help="only show runs: no imports, no measurements")
    ] = False,
    drive: Annotated[bool, Parameter(negative="", help=_HELP_DRIVE)] = False,
    trust_commands: Annotated[
        bool, Parameter(negative="", help="pages may start runs that name programs and files")
    ] = False,
    token: Annotated[bool, Parameter(negative="", help=_HELP_TOKEN)] = False,
    tls_cert: Annotated[Path | None, Parameter(help="certificate for HTTPS (PEM)")] = None,
    tls_key: Annotated[Path | None, Parameter(help="key of the certificate (PEM)")] = None,
) -> None:
    """Serve pages of all runs: search, reports, histories, comparisons, new runs, export, import.

    Only this machine can open them, unless --host names another address. Whoever opens them from
    elsewhere needs the token that is printed.
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
    """Print where the pages are, and what opens them."""
    lines = [f"{settings.root} is shown at {address}/; it ends with Ctrl-C"]
    if settings.drive:
        lines.append(f"the drive is shown at {address}/drive")
    if settings.token:
        lines.append(f"token: {settings.token}")
    if settings.token and settings.scheme == "http" and not is_loopback(settings.host):
        lines.append("the token and all pages travel unencrypted: --tls-cert is advised")
    print_text("\n".join(lines))
    flush()


def check_packages() -> None:
    """Refuse to serve pages without their packages. Raises UsageError."""
    if any(importlib.util.find_spec(name) is None for name in _PACKAGES):
        raise UsageError("pages need packages that are an extra", "pip install 'cachemark[web]'")
