"""Every worker counts faults exactly: reads that are never answered, wrong values, closes."""

from typing import Any

import pytest

from cachemark.checks.fidelity import cases, findings
from cachemark.endpoints.clients import Client, ClientSpec
from tests.workers import worker_driver

FAULTS = [case for case in cases().values() if case.faults.lost or case.faults.wrong]


CLIENTS = [each.id for each in worker_driver.known().values() if not each.in_process]


@pytest.mark.parametrize("client", worker_driver.clients(CLIENTS))
def test_faults(client: Any) -> None:
    """No time is asserted, and no case here is about times."""
    spec: Client = client
    found = list(findings(ClientSpec(text=spec.id, client=spec), [c for c in FAULTS if c.quick], 3))
    assert not [(one.case, one.why) for one in found if one.state == "failed"]
    # A client that never connects again has fewer faults to count, which is no pass.
    assert any(one.state == "passed" for one in found), found
