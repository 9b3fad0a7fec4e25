"""`cachemark servers`: the kinds of servers, how each is named, and whether it can run here."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cachemark.errors import UsageError
from cachemark.servers import Kind, kinds, parse_spec


def servers() -> None:
    """List the kinds of servers."""
    table = Table(box=None, pad_edge=False)
    for column in ("server", "what", "write", "state"):
        table.add_column(column, overflow="fold")
    for kind in kinds():
        table.add_row(kind.name, kind.summary, escape(kind.form), escape(_state(kind)))
    Console().print(table)


def _state(kind: Kind) -> str:
    """Whether its plainest form can run here; some have none, as they must be told where."""
    try:
        missing = kind.missing(parse_spec(kind.name))
    except UsageError:
        return "–"
    return f"{missing.reason}: {missing.remedy}" if missing else "ready"
