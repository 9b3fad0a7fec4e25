"""`cachemark agent`: let this host take part in runs over several hosts."""

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from cachemark.model.errors import UsageError
from cachemark.report.console import plain_console
from cachemark.runs.agents.dask_settings import check_installed
from cachemark.runs.agents.hosts_file import load_hosts


def agent(
    file: Annotated[Path, Parameter(help="the hosts file, the same on all hosts")],
    name: Annotated[str, Parameter(help="this host's name in the file")],
    *,
    once: Annotated[
        bool, Parameter(help="exit after the first run, instead of waiting for another")
    ] = False,
    port: Annotated[
        int | None, Parameter(help="the coordinator's port; default: the one in the file")
    ] = None,
    certs: Annotated[
        Path | None, Parameter(help="folder of the certificates; default: the one in the file")
    ] = None,
) -> None:
    """Wait for `cachemark run --hosts` elsewhere, and start servers and workers for it here.

    Whoever has a certificate of these hosts can run programs as the user of the agent.
    """
    check_installed()
    # Late, as they take half a second to import.
    from cachemark.checks.doctor import doctor  # noqa: PLC0415
    from cachemark.runs.agents.agent import serve  # noqa: PLC0415

    hosts = load_hosts(file)
    if certs is not None:
        hosts = msgspec.structs.replace(hosts, tls=str(certs.resolve()))
    if not hosts.tls:
        raise UsageError(
            f"{file}: without tls, only a run starts its agents itself",
            'write tls = "certs" and make certificates with `cachemark hosts certs FILE`',
        )
    if port is not None:
        place = msgspec.structs.replace(hosts.coordinator, port=port)
        hosts = msgspec.structs.replace(hosts, coordinator=place)
    console = plain_console(stderr=True)
    serve(hosts, name, doctor, once=once, announce=lambda line: console.print(line, markup=False))
