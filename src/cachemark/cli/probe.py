"""`cachemark probe SERVER…`: check whether servers behave like memcached."""

from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape

from cachemark.cli import completers
from cachemark.cli.exit_status import FAILED, OK
from cachemark.cli.output import console, print_sentences, print_text
from cachemark.endpoints.probe import ProbeResult, excluded, probe_new_server
from cachemark.endpoints.servers import parse_spec
from cachemark.model.errors import TrialError
from cachemark.model.experiment import Experiment
from cachemark.model.suites import find, names
from cachemark.report.document import Toned
from cachemark.report.json_text import json_text
from cachemark.report.terminal import print_table
from cachemark.runs.audit.fitness import SuiteFitness, suites_on

_FIT_WORDS = {
    True: Toned("fit", "green"),
    False: Toned("unfit", "yellow"),
    None: Toned("unknown", "dim"),
}


def probe(
    server: Annotated[
        str,
        Parameter(completer=completers.servers, help="a server; `cachemark servers` lists them"),
    ],
    /,
    *more: Annotated[str, Parameter(completer=completers.servers)],
    show_all: Annotated[bool, Parameter(name="--all", help="also show checks that passed")] = False,
    suite: Annotated[
        str,
        Parameter(
            completer=completers.experiments,
            help="the suite or experiment file that decides the exit status",
        ),
    ] = "quick",
    json: Annotated[bool, Parameter(help="print the findings as JSON")] = False,
) -> int:
    """Check whether servers behave like memcached, each with a fresh instance.

    The exit status is 1 if `cachemark run SUITE` would refuse a part of its work on a server.
    """
    decisive = find(suite)
    specs = [parse_spec(text) for text in (server, *more)]
    results: dict[str, list[ProbeResult]] = {}
    for spec in specs:
        try:
            results[spec.text] = probe_new_server(spec)
        except TrialError as error:
            raise TrialError(f"{spec.text}: {error.text}", error.remedy) from error
    if json:
        print_text(json_text(results))
    else:
        for text, findings in results.items():
            _print(text, findings, show_all=show_all)
            _print_suites(suites_on(text, findings, map(find, names())))
    refused = [text for text, findings in results.items() if _refuses(text, findings, decisive)]
    if refused and not json:
        print_sentences(f"`cachemark run {suite}` would refuse work on {', '.join(refused)}.")
    return FAILED if refused else OK


def _refuses(text: str, findings: list[ProbeResult], suite: Experiment) -> bool:
    """Whether a run of the suite would leave out some of its work on the server."""
    (found,) = suites_on(text, findings, [suite])
    return found.playable < found.total


def _print_suites(found: list[SuiteFitness]) -> None:
    """Which suites can be played: all of their workloads and loads, some, or none."""
    rows = [[one.suite, _playable(one), one.reasons[0] if one.reasons else ""] for one in found]
    print_table(console(), ("suite", "can be run", "why not all"), rows)


def _playable(of: SuiteFitness) -> str:
    if of.playable == of.total:
        return "whole" if of.total else "no"
    return f"{of.playable} of {of.total} parts" if of.playable else "no"


def _print(text: str, findings: list[ProbeResult], *, show_all: bool) -> None:
    out = console()
    fit = sum(finding.fit is True for finding in findings)
    out.print(f"{escape(text)}: {fit} of {len(findings)} checks give the same result as memcached")
    rows = [
        [finding.name, _FIT_WORDS[finding.fit], finding.seen, finding.means]
        for finding in findings
        if show_all or not finding.fit
    ]
    print_table(out, ("check", "", "seen", "so"), rows)
    cannot = sorted(excluded(findings))
    out.print(f"cannot be measured: {', '.join(cannot)}\n" if cannot else "")
