"""Runs the cases on a client: each on an empty memcached, over each protocol of the client."""

import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase as fnmatch
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from cachemark.checks.conformance import (
    call_logs,
    capabilities,
    failures,
    given_up,
    groups,
    open_loop,
    operations,
    slices,
    timelines,
    traffic,
)
from cachemark.checks.conformance.cases import ConformanceCase
from cachemark.checks.conformance.worker_driver import (
    CaseFailedError,
    NotApplicableError,
    WorkerDriver,
)
from cachemark.host.shipped_folders import shipped_folder
from cachemark.model.errors import TrialError, UnsupportedError
from cachemark.model.units import version_numbers

ResultState = Literal["passed", "failed", "known", "not applicable"]


class ConformanceResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one case over one protocol. `known`: a failure in known_failures.toml."""

    case: str
    wire: str
    state: ResultState
    text: str = ""


class KnownFailure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A known bug of a library: the case that fails, and why; over all protocols or one `wire`.

    `since`: the first version of the library that has it.
    """

    client: str
    case: str
    reason: str
    wire: str = ""
    since: str = ""


def folder() -> Path:
    """The folder `conformance`: $CACHEMARK_CONFORMANCE, in the checkout, or in the package."""
    return shipped_folder("conformance", "CACHEMARK_CONFORMANCE")


def checks() -> dict[str, ConformanceCase]:
    """Every case by name: those that are data, and those that are functions."""
    modules = (
        failures, traffic, open_loop, timelines, slices, groups, capabilities, call_logs, given_up,
    )  # fmt: skip
    data = {case.name: case.as_conformance_case() for case in operations.read_cases(folder())}
    return data | {case.name(): case for module in modules for case in module.CASES}


def known_failures() -> tuple[KnownFailure, ...]:
    """The entries of known_failures.toml."""
    return _parsed_failures((folder() / "known_failures.toml").read_text(encoding="utf-8"))


@cache
def _parsed_failures(text: str) -> tuple[KnownFailure, ...]:
    """Parse the entries once, since every case of every client needs them."""
    return msgspec.convert(tomllib.loads(text).get("failure", []), tuple[KnownFailure, ...])


def find(driver: WorkerDriver, name: str, case: ConformanceCase) -> Iterator[ConformanceResult]:
    """Run one case over each protocol of a client. Raises UnsupportedError if it cannot start."""
    for wire in driver.wires:
        yield _mark_known(driver, _find(driver, wire, name, case))


def _find(driver: WorkerDriver, wire: str, name: str, case: ConformanceCase) -> ConformanceResult:
    excluded = case.excluded(driver.spec.client, driver.ready, wire)
    if excluded and not case.must_refuse:
        return ConformanceResult(case=name, wire=wire, state="not applicable", text=excluded)
    try:
        case.play(driver, wire, driver.empty_server(wire))
    except NotApplicableError as error:
        return ConformanceResult(case=name, wire=wire, state="not applicable", text=str(error))
    except UnsupportedError:
        raise
    except (CaseFailedError, TrialError) as error:
        text = _with_traceback(driver, str(error))
        driver.replace()
        return ConformanceResult(case=name, wire=wire, state="failed", text=text)
    return ConformanceResult(case=name, wire=wire, state="passed")


def _with_traceback(driver: WorkerDriver, text: str) -> str:
    """A failure, with the worker's stderr if it is a mistake in the worker's own code."""
    log = driver.worker.log_tail().strip() if "internal" in text else ""
    return f"{text}\n{log}" if log else text


def _mark_known(driver: WorkerDriver, finding: ConformanceResult) -> ConformanceResult:
    """Mark a listed failure as known. A listed case that passes is a failure: update the list."""
    listed = [
        known
        for known in known_failures()
        if fnmatch(driver.spec.client.id, known.client)
        and version_numbers(driver.ready.library_version) >= version_numbers(known.since)
        and known.case == finding.case
        and known.wire in ("", finding.wire)
    ]
    if not listed:
        return finding
    if finding.state == "failed":
        return msgspec.structs.replace(finding, state="known", text=listed[0].reason)
    if finding.state == "passed":
        text = "known_failures.toml lists it, but it passes: remove the entry"
        return msgspec.structs.replace(finding, state="failed", text=text)
    return finding
