"""`cachemark servers`: list the kinds of servers, and whether each can run on this machine."""

from __future__ import annotations

import subprocess
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape
from rich.table import Table

from cachemark.cli.output import console
from cachemark.endpoints.servers import kinds, readiness
from cachemark.endpoints.servers.third_party import FOLDER
from cachemark.model.errors import TrialError, UsageError


def servers(
    *,
    setup: Annotated[str | None, Parameter(help="build this server (only some need it)")] = None,
) -> None:
    """List the kinds of servers, or set one up."""
    if setup is not None:
        _set_up(setup)
        return
    table = Table(box=None, pad_edge=False)
    for column in ("server", "what", "write", "state"):
        table.add_column(column, overflow="fold")
    for kind in kinds():
        what = f"{kind.summary}; {kind.note}" if kind.note else kind.summary
        table.add_row(kind.name, escape(what), escape(kind.form), escape(readiness(kind)))
    console().print(table)


def _set_up(name: str) -> None:
    known = {kind.name: kind.setup for kind in kinds() if kind.setup}
    if name not in known:
        raise UsageError(
            f"--setup {name}: this server needs no set-up", f"servers that do: {', '.join(known)}"
        )
    program = FOLDER / known[name]
    if subprocess.run(["sh", str(program)], check=False).returncode:
        raise TrialError(f"{name} could not be set up")
