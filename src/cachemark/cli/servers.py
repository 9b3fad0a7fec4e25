"""`cachemark servers`: list the kinds of servers, and whether each can run on this machine."""

import subprocess
from typing import Annotated

from cyclopts import Parameter

from cachemark.cli.output import console
from cachemark.endpoints.servers import kinds, readiness
from cachemark.endpoints.servers.third_party import FOLDER
from cachemark.model.errors import TrialError, UsageError
from cachemark.report.console import print_words, word_lines
from cachemark.report.terminal import print_table

# A narrower terminal has a paragraph for each kind: in a table, options would be cut in two.
_ROOM_FOR_TABLE = 160


def servers(
    *, setup: Annotated[str | None, Parameter(help="build this server (only some need it)")] = None
) -> None:
    """List the kinds of servers, or set one up."""
    if setup is not None:
        _set_up(setup)
        return
    rows = [
        [kind.name, "; ".join(filter(None, (kind.summary, kind.note))), kind.form, readiness(kind)]
        for kind in kinds()
    ]
    out = console()
    if out.width >= _ROOM_FOR_TABLE:
        print_table(out, ("server", "what", "write", "state"), rows)
        return
    for name, what, form, state in rows:
        print_words(out, f"{name}: {what}", wrapped=True)
        for line in form_lines(form, out.width):
            out.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
        print_words(out, f"  {state}", wrapped=True)


def form_lines(form: str, width: int) -> list[str]:
    """The form of a server in lines that end between its options, to be copied. Pure."""
    lines = word_lines(form.replace(",", ", "), width - 2)
    return [line.replace(", ", ",") for line in lines]


def _set_up(name: str) -> None:
    known = {kind.name: kind.setup for kind in kinds() if kind.setup}
    if name not in known:
        raise UsageError(
            f"--setup {name}: this server needs no set-up", f"servers that do: {', '.join(known)}"
        )
    program = FOLDER / known[name]
    if subprocess.run(["sh", str(program)], check=False).returncode:
        raise TrialError(f"{name} could not be set up")
