"""`cachemark fidelity`: check that the workers' figures are true."""

from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from cachemark.checks.fidelity import (
    Case,
    FidelityResult,
    cases,
    findings,
    milliseconds,
    percentile_name,
)
from cachemark.checks.fidelity.tools import TOOLS, Tool, tool_results
from cachemark.cli import completers
from cachemark.cli.output import console, print_text
from cachemark.endpoints.clients import ClientSpec, parse_client, registry
from cachemark.host import process
from cachemark.host.awake import awake
from cachemark.host.placement import usable_cpus
from cachemark.model.client_name import NATIVE
from cachemark.model.errors import UsageError
from cachemark.report.console import print_words
from cachemark.report.document import Toned
from cachemark.report.json_text import json_text
from cachemark.report.terminal import print_table, print_toned

_COLOURS = {
    "passed": "green",
    "failed": "red",
    "known": "yellow",
    "not judged": "yellow",
    "not applicable": "dim",
}
_ALL = "all"
_COLUMNS = ("case", "client", "result", "error of each percentile", "tolerance")


def fidelity(
    *clients: Annotated[str, Parameter(completer=completers.clients)],
    client: completers.ClientOption = (),
    case: Annotated[tuple[str, ...], Parameter(help="only these cases (may be repeated)")] = (),
    quick: Annotated[bool, Parameter(help="only the quick cases")] = False,
    tries: Annotated[
        int, Parameter(help="number of attempts for a case if the host is too noisy")
    ] = 3,
    tool: Annotated[
        tuple[str, ...],
        Parameter(help="also another load generator on PATH, or `all` of them (may be repeated)"),
    ] = (),
    awake: Annotated[
        bool,
        Parameter(
            negative="--no-awake",
            help="keep idle CPUs awake during the cases, so that more of them can be judged",
        ),
    ] = True,
    json: Annotated[bool, Parameter(help="print the findings as JSON")] = False,
) -> int:
    """Compare what clients report with a scripted server's own log and with analytic answers.

    CLIENT is `native` by default; `all` means every client that is set up on this machine. The
    exit status is 1 if a case failed. If the host is too noisy for a case, the case is `not
    judged`; this does not mean that it passed. Errors of other load generators are shown, but do
    not change the exit status.
    """
    wanted = _wanted(case, quick=quick)
    if tries < 1:
        raise UsageError(f"--tries {tries}", "at least 1")
    out = console(stderr=json)
    tools = _tools(tool)
    results: list[FidelityResult] = []
    reported: set[tuple[str, str]] = set()
    specs = list(_specs((*clients, *client)))
    with _awake(out) if awake else nullcontext():
        for finding in _all_findings(specs, tools, wanted, tries):
            results.append(finding)
            # If a client can play no case, the reason is printed once.
            if finding.state != "not applicable" or (finding.client, finding.why) not in reported:
                _progress(out, finding)
            reported.add((finding.client, finding.why))
    if json:
        print_text(json_text(results))
    else:
        out.print("measured minus injected, ms")
        print_table(out, _COLUMNS, _rows(wanted, results))
    _print_tool_notes(out, tools)
    ours = Counter(one.state for one in results if one.client not in TOOLS)
    print_words(out, ", ".join(f"{count} {state}" for state, count in sorted(ours.items())))
    return 1 if ours["failed"] else 0


@contextmanager
def _awake(out: Console) -> Generator[None]:
    """Keep the CPUs awake. If the kernel refuses, print a message and continue."""
    with ExitStack() as stack:
        try:
            stack.enter_context(awake(usable_cpus()))
        except UsageError as error:
            print_words(out, f"{error.text}; times may be late")
        else:
            print_words(out, "idle CPUs are kept awake (use --no-awake to let them sleep)")
        yield


def _all_findings(
    specs: list[ClientSpec], tools: list[Tool], wanted: list[Case], tries: int
) -> Iterator[FidelityResult]:
    for spec in specs:
        yield from findings(spec, wanted, tries)
    for each in tools:
        yield from tool_results(each, wanted, tries)


def _tools(names: tuple[str, ...]) -> list[Tool]:
    for name in names:
        if name not in TOOLS and name != _ALL:
            raise UsageError(f"no tool {name!r}", f"tools: {', '.join(TOOLS)}")
    return [tool for name, tool in TOOLS.items() if name in names or _ALL in names]


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
        spec.client.require(UsageError)
    yield from specs
    if _ALL in names:
        for client in known.values():
            if not client.missing() and not client.in_process:
                yield ClientSpec(text=client.id, client=client)


def _progress(console: Console, finding: FidelityResult) -> None:
    why = f": {finding.why}" if finding.why else ""
    print_toned(console, _state(finding), f"{finding.client}  {finding.case}{why}")


def _state(finding: FidelityResult) -> Toned:
    return Toned(finding.state, _COLOURS[finding.state])


def _rows(wanted: list[Case], found: list[FidelityResult]) -> list[list[str]]:
    """The cases in groups, with a row for each client: the error of each percentile."""
    rows: list[list[str]] = []
    for case in wanted:
        for number, finding in enumerate(one for one in found if one.case == case.name):
            if finding.state == "not applicable":
                continue
            errors = ", ".join(
                f"{percentile_name(line.percent)} {milliseconds(line.error_ns)}"
                for line in finding.lines
            )
            most = max((line.most_ns for line in finding.lines), default=None)
            tolerance = "exact" if most is None else milliseconds(most)
            name = "" if number else case.name
            rows.append(
                [name, finding.client, _state(finding), errors or _counts(finding), tolerance]
            )
    return rows


def _print_tool_notes(console: Console, tools: list[Tool]) -> None:
    for tool in tools:
        tried = (
            f"tested with {tool.tried}"
            if tool.tried
            else "written from the tool's documents and never run"
        )
        note = f"; {tool.note}" if tool.note else ""
        print_words(console, f"{tool.name}: the adapter was {tried}{note}")


def _counts(finding: FidelityResult) -> str:
    return ", ".join(f"{count.name} {count.measured:,}" for count in finding.counts)
