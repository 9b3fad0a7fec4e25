"""`cachemark fidelity`: is what a client's worker says true?"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cachemark import process
from cachemark.clients import NATIVE, ClientSpec, parse_client, registry
from cachemark.errors import UsageError
from cachemark.fidelity import Case, Finding, cases, findings, milliseconds, named

_COLOURS = {"passed": "green", "failed": "red", "not judged": "yellow", "not applicable": "dim"}
_ALL = "all"


def fidelity(
    *clients: str,
    case: Annotated[tuple[str, ...], Parameter(negative="", help="only these (repeat it)")] = (),
    quick: Annotated[bool, Parameter(negative="", help="only the cases that are quick")] = False,
    tries: Annotated[
        int, Parameter(help="how often a case is tried that the host is too noisy for")
    ] = 3,
    json: Annotated[bool, Parameter(negative="", help="print the findings as JSON")] = False,
) -> int:
    """Hold what clients say against a scripted server's own log and against analytic answers.

    CLIENT is `native` by default; `all` is every client that is set up here. The exit status is 1
    when a case failed; one that the host is too noisy for is `not judged`, which is no pass.
    """
    wanted = _wanted(case, quick=quick)
    if tries < 1:
        raise UsageError(f"--tries {tries}", "at least 1")
    console = Console(stderr=json, highlight=False)
    found: list[Finding] = []
    for spec in _specs(clients):
        for finding in findings(spec, wanted, tries):
            found.append(finding)
            _progress(console, finding)
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found)).decode() + "\n")
    else:
        console.print(_table(wanted, found))
    counted = Counter(finding.state for finding in found)
    sums = ", ".join(f"{count} {state}" for state, count in sorted(counted.items()))
    console.print(sums, soft_wrap=True)
    return 1 if counted["failed"] else 0


def _wanted(names: tuple[str, ...], *, quick: bool) -> list[Case]:
    known = cases()
    for name in names:
        if name not in known:
            raise UsageError(f"no case {name!r}", f"cases: {', '.join(known)}")
    chosen = [case for name, case in known.items() if not names or name in names]
    return [case for case in chosen if case.quick or not quick]


def _specs(names: tuple[str, ...]) -> Iterator[ClientSpec]:
    known = registry(process.binary_path())
    specs = [parse_client(name, known) for name in names or (NATIVE,) if name != _ALL]
    for spec in specs:
        if missing := spec.client.missing():
            raise UsageError(missing, spec.client.setup)
    yield from specs
    if _ALL in names:
        for client in known.values():
            if not client.missing() and not client.in_process:
                yield ClientSpec(text=client.id, client=client)


def _progress(console: Console, finding: Finding) -> None:
    colour = _COLOURS[finding.state]
    why = f": {escape(finding.why)}" if finding.why else ""
    text = f"[{colour}]{finding.state}[/]  {escape(finding.client)}  {finding.case}{why}"
    console.print(text, soft_wrap=True)


def _table(wanted: list[Case], found: list[Finding]) -> Table:
    """Cases in groups, a row for each client: the error of each percentile."""
    table = Table(
        box=None, pad_edge=False, title="measured minus injected, ms", title_justify="left"
    )
    for column in ("case", "client", "so", "error of each percentile", "may be"):
        table.add_column(column, overflow="fold")
    for case in wanted:
        for number, finding in enumerate(one for one in found if one.case == case.name):
            if finding.state == "not applicable":
                continue
            errors = ", ".join(
                f"{named(line.percent)} {milliseconds(line.error_ns)}" for line in finding.lines
            )
            most = max((line.most_ns for line in finding.lines), default=None)
            table.add_row(
                "" if number else escape(case.name),
                escape(finding.client),
                f"[{_COLOURS[finding.state]}]{finding.state}[/]",
                errors or _counts(finding),
                "exact" if most is None else milliseconds(most),
            )
    return table


def _counts(finding: Finding) -> str:
    return ", ".join(f"{count.name} {count.measured:,}" for count in finding.counts)
