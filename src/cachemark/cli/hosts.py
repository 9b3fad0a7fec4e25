"""`cachemark hosts`: certificates for the hosts of a file, and a check of all of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from cachemark.cli.output import console, print_sentences
from cachemark.model.errors import UsageError
from cachemark.report.console import plain_console
from cachemark.report.terminal import print_table
from cachemark.runs.agents.dask_settings import check_installed
from cachemark.runs.agents.hosts_file import load_hosts


def hosts(
    action: Annotated[
        Literal["certs", "check"],
        Parameter(help="certs: make certificates; check: connect to all hosts and compare them"),
    ],
    file: Annotated[Path, Parameter(help="the hosts file")],
    *,
    connect_s: Annotated[float, Parameter(help="check: how long to wait for the agents")] = 60.0,
) -> int:
    """Make the certificates of a hosts file, or check all of its hosts before a run.

    The exit status of `check` is 1 if hosts differ in their software, or one is unfit.
    """
    check_installed()
    if action == "certs":
        _make_certificates(file)
        return 0
    return _check(file, connect_s)


def _make_certificates(file: Path) -> None:
    from cachemark.runs.agents.certificates import (  # noqa: PLC0415  # needs an extra package
        COORDINATOR,
        write_certificates,
    )

    known = load_hosts(file)
    if not known.tls:
        raise UsageError(f"{file}: it has no tls", 'write tls = "certs": the folder to make')
    names = [COORDINATOR, *(host.name for host in known.hosts)]
    write_certificates(Path(known.tls), names)
    print_sentences(
        f"{known.tls}: {len(names)} certificates, valid for a year. Copy to each host ca.pem, and "
        "NAME.pem and NAME-key.pem of its own name, nothing else. The coordinator's stay here."
    )


def _check(file: Path, connect_s: float) -> int:
    # Late, as Dask takes half a second to import.
    from cachemark.runs.agents.check import HostCheck, check_all  # noqa: PLC0415
    from cachemark.runs.agents.coordinator import coordinating  # noqa: PLC0415

    announce = plain_console(stderr=True).print
    known = load_hosts(file)
    with coordinating(known, file, connect_s=connect_s, announce=announce) as coordinator:
        comparison = check_all(coordinator)
    checks: Mapping[str, HostCheck] = comparison.hosts
    columns = ("host", "roles", "machine", "clock", "round trip", "from the server", "doctor")
    rows = [
        [
            host.name,
            ", ".join(host.roles),
            row.machine,
            row.clock_text,
            row.round_trip_text,
            row.bandwidth_text,
            row.doctor_text,
        ]
        for host in known.hosts
        for row in [checks[host.name]]
    ]
    print_table(console(), columns, rows)
    for line in comparison.differences:
        print_sentences(f"differs: {line}")
    if not comparison.differences:
        print_sentences("all hosts have the same cachemark and the same engine")
    return 1 if comparison.differences or any(row.failed for row in checks.values()) else 0
