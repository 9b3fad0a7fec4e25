"""`cachemark conform`: check that workers count and verify correctly."""

from collections import Counter
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from cachemark.checks.conformance import (
    ConformanceCase,
    ConformanceResult,
    WorkerDriver,
    checks,
    find,
)
from cachemark.cli import completers
from cachemark.cli.output import console
from cachemark.endpoints.clients import ClientSpec, parse_client, registry
from cachemark.host import process
from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import UsageError
from cachemark.report.console import print_words
from cachemark.report.document import Toned
from cachemark.report.terminal import print_toned

_COLOURS = {"passed": "green", "failed": "red", "known": "yellow", "not applicable": "dim"}


def conform(
    *clients: Annotated[str, Parameter(completer=completers.clients)],
    client: completers.ClientOption = (),
    case: Annotated[tuple[str, ...], Parameter(help="only these cases (may be repeated)")] = (),
    verbose: Annotated[bool, Parameter(help="also show cases that passed")] = False,
) -> int:
    """Run the conformance cases on clients: `python/pymemcache`, or `command:PROGRAM ARGS`.

    This needs memcached. The exit status is 1 if a case failed.
    """
    if not (clients := (*clients, *client)):
        raise UsageError("no client was named", "`cachemark clients` lists them")
    chosen = checks()
    for name in case:
        if name not in chosen:
            raise UsageError(f"no case {name!r}", f"cases: {', '.join(chosen)}")
    wanted = {name: check for name, check in chosen.items() if not case or name in case}
    known = registry(process.binary_path())
    specs = [parse_client(text, known) for text in clients]
    out = console()
    return max(_check_client(out, spec, wanted, verbose=verbose) for spec in specs)


def _check_client(
    console: Console, spec: ClientSpec, wanted: dict[str, ConformanceCase], *, verbose: bool
) -> int:
    spec.client.require(UsageError)
    counts: Counter[str] = Counter()
    with temporary_folder() as folder, WorkerDriver(spec, folder) as driver:
        for name, check in wanted.items():
            for finding in find(driver, name, check):
                counts[finding.state] += 1
                _print_finding(console, finding, verbose=verbose)
    sums = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    print_words(console, f"{spec.text}: {sums}")
    return 1 if counts["failed"] else 0


def _print_finding(console: Console, finding: ConformanceResult, *, verbose: bool) -> None:
    if finding.state in ("failed", "known") or verbose:
        text = f": {finding.text}" if finding.text else ""
        word = Toned(finding.state, _COLOURS[finding.state])
        print_toned(console, word, f"{finding.wire}  {finding.case}{text}")
