"""`cachemark probe SERVER…`: check whether servers behave like memcached."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape
from rich.table import Table

from cachemark.checks.probe import EVERYTHING, ProbeResult, excluded, probe_new_server
from cachemark.cli.output import console, print_text
from cachemark.endpoints.servers import parse_spec
from cachemark.model.errors import TrialError
from cachemark.report.json_text import json_text

_FIT_TEXTS = {True: "[green]fit[/]", False: "[yellow]unfit[/]", None: "[dim]unknown[/]"}


def probe(
    server: Annotated[str, Parameter(help="a server; `cachemark servers` lists them")],
    /,
    *more: str,
    show_all: Annotated[
        bool, Parameter(name="--all", negative="", help="also show checks that passed")
    ] = False,
    json: Annotated[bool, Parameter(negative="", help="print the findings as JSON")] = False,
) -> int:
    """Check whether servers behave like memcached, each with a fresh instance.

    The exit status is 1 if a server cannot be measured at all.
    """
    specs = [parse_spec(text) for text in (server, *more)]
    found: dict[str, list[ProbeResult]] = {}
    for spec in specs:
        try:
            found[spec.text] = probe_new_server(spec)
        except TrialError as error:
            raise TrialError(f"{spec.text}: {error.text}", error.remedy) from error
    if json:
        print_text(json_text(found))
    else:
        for text, findings in found.items():
            _print(text, findings, show_all=show_all)
    bad = any(EVERYTHING in one.excludes for findings in found.values() for one in findings)
    return 1 if bad else 0


def _print(text: str, findings: list[ProbeResult], *, show_all: bool) -> None:
    print_line = console().print
    fit = sum(finding.fit is True for finding in findings)
    print_line(f"{escape(text)}: {fit} of {len(findings)} checks give the same result as memcached")
    table = Table(box=None, pad_edge=False)
    for column in ("check", "", "seen", "so"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        if show_all or not finding.fit:
            seen, means = escape(finding.seen), escape(finding.means)
            table.add_row(escape(finding.name), _FIT_TEXTS[finding.fit], seen, means)
    if table.row_count:
        print_line(table)
    cannot = sorted(excluded(findings))
    print_line(f"cannot be measured: {', '.join(cannot)}\n" if cannot else "")
