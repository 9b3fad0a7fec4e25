"""`cachemark servers`: the kinds of servers, how each is named, and whether it can run here."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cachemark.servers import ServerSpec, kinds


def servers() -> None:
    """List the kinds of servers."""
    table = Table(box=None, pad_edge=False)
    for column in ("server", "what", "write", "state"):
        table.add_column(column, overflow="fold")
    for kind in kinds():
        missing = ""
        if kind.name == "memcached":
            missing = kind.missing(ServerSpec(text=kind.name, kind=kind.name))
        table.add_row(kind.name, kind.summary, escape(kind.form), missing or "ready")
    Console().print(table)
