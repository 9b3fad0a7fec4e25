"""Runs the cases on one client, and repeats a case if the host was too noisy to judge it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase as fnmatch

from msgspec.structs import replace

from cachemark.checks.fidelity.cases import Case, KnownMiss, known_failures
from cachemark.checks.fidelity.judge import FidelityResult, JudgedState
from cachemark.checks.fidelity.play import WIRES, ClientUnderTest, find
from cachemark.endpoints.clients import ClientSpec
from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import TrialError, UnsupportedError


def findings(spec: ClientSpec, wanted: list[Case], tries: int) -> Iterator[FidelityResult]:
    """Run each case on a client; yields each result as soon as it is known."""
    with (
        temporary_folder() as folder,
        ClientUnderTest(spec, folder) as client,
    ):
        try:
            wire = client.wire()
        except UnsupportedError as error:
            yield from _all(spec, wanted, "not applicable", error.text)
            return
        except TrialError as error:
            yield from _all(spec, wanted, "failed", error.text)
            return
        if not wire:
            why = f"it speaks neither {' nor '.join(WIRES)}"
            yield from _all(spec, wanted, "not applicable", why)
            return
        for case in wanted:
            finding = retry_until_judged(lambda case=case: find(client, case, wire), tries)
            yield mark_known(spec.client.id, finding, known_failures())


def retry_until_judged(attempt: Callable[[], FidelityResult], tries: int) -> FidelityResult:
    """Repeat a case until its result is final, at most `tries` times.

    A case is repeated if it was not judged, or if only a percentile was wrong, or only counts of
    reads that a stall may have let time out: a bug does that each time, a delay on the host does
    not. Any other wrong count is final.
    """
    finding = attempt()
    for _ in range(tries - 1):
        if finding.state != "not judged" and not finding.may_be_noise:
            break
        finding = attempt()
    return finding


def mark_known(client: str, finding: FidelityResult, known: list[KnownMiss]) -> FidelityResult:
    """Mark a listed failure as known. A listed case that passes is a failure: update the list."""
    listed = [one for one in known if one.case == finding.case and fnmatch(client, one.client)]
    if listed and finding.state == "failed":
        return replace(finding, state="known", why=f"{finding.why}: {listed[0].reason}")
    if finding.state == "passed" and any(not one.sometimes for one in listed):
        return replace(finding, state="failed", why="it is listed as known, but passes")
    return finding


def _all(
    spec: ClientSpec, wanted: list[Case], state: JudgedState, why: str
) -> Iterator[FidelityResult]:
    for case in wanted:
        yield FidelityResult(client=spec.text, case=case.name, state=state, why=why)
