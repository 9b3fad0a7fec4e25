"""`cachemark servers`: list the kinds of servers, and whether each can run on this machine."""

from __future__ import annotations

import subprocess
from typing import Annotated

from cyclopts import Parameter

from cachemark.cli.output import console
from cachemark.endpoints.servers import kinds, readiness
from cachemark.endpoints.servers.third_party import FOLDER
from cachemark.model.errors import TrialError, UsageError
from cachemark.report.terminal import print_table


def servers(
    *,
    setup: Annotated[str | None, Parameter(help="build this server (only some need it)")] = None,
) -> None:
    """List the kinds of servers, or set one up."""
    if setup is not None:
        _set_up(setup)
        return
    rows = [
        [kind.name, "; ".join(filter(None, (kind.summary, kind.note))), kind.form, readiness(kind)]
        for kind in kinds()
    ]
    print_table(console(), ("server", "what", "write", "state"), rows)


def _set_up(name: str) -> None:
    known = {kind.name: kind.setup for kind in kinds() if kind.setup}
    if name not in known:
        raise UsageError(
            f"--setup {name}: this server needs no set-up", f"servers that do: {', '.join(known)}"
        )
    program = FOLDER / known[name]
    if subprocess.run(["sh", str(program)], check=False).returncode:
        raise TrialError(f"{name} could not be set up")
