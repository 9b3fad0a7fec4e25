"""`cachemark web`: serve pages of the runs of a store."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachemark.cli.output import print_text
from cachemark.cli.standard_streams import flush
from cachemark.model.errors import UsageError

_PACKAGES = ("starlette", "uvicorn")
_HELP_TOKEN = "ask for a token on this machine too; other addresses always ask for one"


def web(
    *,
    runs: Annotated[Path, Parameter(help="folder of all runs")] = Path("results"),
    host: Annotated[str, Parameter(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="port to listen on; 0: any free port")] = 5770,
    read_only: Annotated[
        bool, Parameter(negative="", help="only show runs: no imports, no measurements")
    ] = False,
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
    if (tls_cert is None) != (tls_key is None):
        raise UsageError("--tls-cert and --tls-key: one without the other", "name both files")
    for option, path in (("--tls-cert", tls_cert), ("--tls-key", tls_key)):
        if path is not None and not path.is_file():
            raise UsageError(f"{option} {path}: no such file")
    if not 0 <= port <= 65535:
        raise UsageError(f"--port {port}: not a port", "such as --port 5770; 0: any free port")
    # Late, as these packages are an extra.
    from cachemark.web.server import serve  # noqa: PLC0415
    from cachemark.web.settings import WebSettings, is_loopback, new_token  # noqa: PLC0415

    secret = new_token() if token or not is_loopback(host) else ""
    settings = WebSettings(
        root=runs,
        host=host,
        port=port,
        read_only=read_only,
        trust_commands=trust_commands,
        token=secret,
        tls_cert=tls_cert,
        tls_key=tls_key,
    )

    def announce(address: str) -> None:
        lines = [f"{runs} is shown at {address}/; it ends with Ctrl-C"]
        if secret:
            lines.append(f"token: {secret}")
        if secret and tls_cert is None and not is_loopback(host):
            lines.append("the token and all pages travel unencrypted: --tls-cert is advised")
        print_text("\n".join(lines))
        flush()

    serve(settings, announce)


def check_packages() -> None:
    """Refuse to serve pages without their packages. Raises UsageError."""
    if any(importlib.util.find_spec(name) is None for name in _PACKAGES):
        raise UsageError("pages need packages that are an extra", "pip install 'cachemark[web]'")
