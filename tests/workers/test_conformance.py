"""Every worker counts the same: each case of the conformance runner, on each protocol it speaks."""

import re
import shutil
from collections.abc import Generator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from cachemark.checks.conformance import ConformanceResult, WorkerDriver, checks, find
from cachemark.checks.conformance.runner import known_failures
from cachemark.endpoints.clients import Client, ClientSpec, registry
from cachemark.host import process
from tests.conftest import ROOT
from tests.workers import worker_driver

pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)
CASES = checks()
CLIENTS = worker_driver.clients()


class TapeSharingDriver(WorkerDriver):
    """Every client is asked to play the same tapes: each is written once."""

    def tape(self, *arguments: str) -> Path:
        return worker_driver.write_tape(self.folder, *arguments)


@pytest.fixture(scope="module", params=CLIENTS)
def driver(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Generator[WorkerDriver]:
    """One worker for all cases of a client: a second prepare has to be as good as the first."""
    client: Client = request.param
    folder: Path = tmp_path_factory.mktemp("driver")
    with TapeSharingDriver(ClientSpec(text=client.id, client=client), folder) as driver:
        yield driver


def claimed() -> list[Any]:
    """Each client with each case that applies to what its worker claims."""
    return [
        pytest.param(*client.values, name, id=f"{client.id}-{name}", marks=client.marks)
        for client in CLIENTS
        for name, case in CASES.items()
        if (ready := worker_driver.claims(client.id)) is None
        or case.applies(client.values[0], ready)
    ]


def failures_of(findings: list[ConformanceResult]) -> list[str]:
    return [f"{each.case}, {each.wire}: {each.text}" for each in findings if each.state == "failed"]


@pytest.mark.parametrize(("driver", "name"), claimed(), indirect=["driver"], scope="module")
def test_case(driver: WorkerDriver, name: str) -> None:
    findings = list(find(driver, name, CASES[name]))
    assert not failures_of(findings)
    assert any(each.state != "not applicable" for each in findings), findings


def test_what_it_does_not_claim_it_refuses(driver: WorkerDriver) -> None:
    """The cases that are no tests of their own: those that must be refused are asked for."""
    others = [
        name for name, case in CASES.items() if not case.applies(driver.spec.client, driver.ready)
    ]
    findings = [finding for name in others for finding in find(driver, name, CASES[name])]
    assert not failures_of(findings)
    assert all(each.state == "not applicable" for each in findings), findings


@pytest.mark.parametrize("client", worker_driver.absent())
def test_it_is_on_this_machine(client: str) -> None:
    pytest.skip(worker_driver.absent()[client])


def test_every_worker_keeps_a_timeline(driver: WorkerDriver) -> None:
    """So that an open loop's level is judged by its response times, whatever the language."""
    # The reference is a template of 230 lines.
    assert driver.can("timeline") == (driver.spec.client.id != "reference")


def test_worker_toml_says_where_a_client_runs(driver: WorkerDriver) -> None:
    """That it needs no server is needed before it starts; the worker itself says so later."""
    assert driver.spec.client.in_process == (driver.wires == ["none"])


def test_the_methodology_names_the_clients_that_see_no_flags() -> None:
    text = (ROOT / "docs/methodology-work.md").read_text(encoding="utf-8")
    _, found, after = text.partition("where the library shows flags: not in ")
    assert found
    named = set(re.findall(r"`([^`]+)`", after.partition(".\n")[0]))
    known = [each for each in known_failures() if each.case == "other flags are a wrong value"]
    assert named == {each.client for each in known}


def test_known_failures_name_clients_and_cases() -> None:
    clients = registry(process.binary_path())
    for known in known_failures():
        assert any(fnmatch(client, known.client) for client in clients), known
        assert known.case in CASES, known
        assert known.reason
