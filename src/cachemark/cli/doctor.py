"""`cachemark doctor`: check whether this machine is suitable for measurements."""

from typing import Annotated

from cyclopts import Parameter

from cachemark.checks.doctor import doctor as examine
from cachemark.cli.output import console, print_text
from cachemark.host.process import require_linux
from cachemark.model.machine_limits import Check, Status
from cachemark.report.document import Toned
from cachemark.report.json_text import json_text
from cachemark.report.terminal import print_table

_STYLES: dict[Status, str] = {"ok": "green", "warn": "yellow", "fail": "bold red", "info": "dim"}


def doctor(
    *,
    limits: Annotated[bool, Parameter(help="show the limits of each check")] = False,
    json: Annotated[bool, Parameter(help="print the checks as JSON")] = False,
    target: Annotated[
        tuple[str, ...],
        Parameter(help="HOST:PORT of a remote server: also measure the round trip to it"),
    ] = (),
) -> int:
    """Check whether this machine is suitable for measurements.

    The exit status is 1 if a check fails.
    """
    require_linux()
    checks = examine(targets=target)
    if json:
        print_text(json_text(checks))
    else:
        _print(checks, limits=limits)
    return 1 if any(check.status == "fail" for check in checks) else 0


def _print(checks: list[Check], *, limits: bool) -> None:
    columns = ("check", "", "value", *(["limits"] if limits else []), "remedy")
    rows = [
        [
            check.name,
            Toned(check.status, _STYLES[check.status]),
            check.value,
            *([check.limits] if limits else []),
            check.remedy,
        ]
        for check in checks
    ]
    out = console()
    print_table(out, columns, rows)
    counts = {word: sum(c.status == word for c in checks) for word in ("fail", "warn")}
    out.print(f"{counts['fail']} failed, {counts['warn']} warnings")
