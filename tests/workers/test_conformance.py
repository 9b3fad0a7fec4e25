"""Every worker counts the same: each case of the conformance runner, on each protocol it speaks."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from cachemark.checks.conformance import WorkerDriver, checks, find
from cachemark.checks.conformance.runner import known_failures
from cachemark.endpoints.clients import Client, ClientSpec, registry
from cachemark.host import process
from cachemark.model.errors import UnsupportedError
from tests.workers import worker_driver

pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)
CASES = checks()


@pytest.fixture(scope="module", params=worker_driver.clients())
def driver(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Generator[WorkerDriver]:
    """One worker for all cases of a client: a second prepare has to be as good as the first."""
    client: Client = request.param
    folder: Path = tmp_path_factory.mktemp("driver")
    with WorkerDriver(ClientSpec(text=client.id, client=client), folder) as driver:
        try:
            assert driver.wires
        except UnsupportedError as error:  # the worker is here, the library is not
            pytest.skip(str(error))
        yield driver


@pytest.mark.parametrize("name", CASES)
def test_case(driver: WorkerDriver, name: str) -> None:
    findings = list(find(driver, name, CASES[name]))
    failed = [
        f"{finding.wire}: {finding.text}" for finding in findings if finding.state == "failed"
    ]
    assert not failed, failed
    if all(finding.state == "not applicable" for finding in findings):
        pytest.skip(findings[0].text)


def test_every_worker_keeps_a_timeline(driver: WorkerDriver) -> None:
    """So that an open loop's level is judged by its response times, whatever the language."""
    if driver.spec.client.id == "reference":
        pytest.skip("a template of 230 lines")
    assert driver.can("timeline")


def test_worker_toml_says_where_a_client_runs(driver: WorkerDriver) -> None:
    """That it needs no server is needed before it starts; the worker itself says so later."""
    assert driver.spec.client.in_process == (driver.wires == ["none"])


def test_known_failures_name_clients_and_cases() -> None:
    clients = registry(process.binary_path())
    for known in known_failures():
        assert any(fnmatch(client, known.client) for client in clients), known
        assert known.case in CASES, known
        assert known.reason
