"""A worker that plays slices as asked prints nothing in its log: the log is for errors."""

from pathlib import Path

import pytest

from cachemark.checks.conformance.slice_driver import MAX_SLICES
from cachemark.endpoints.clients import registry
from cachemark.endpoints.worker import Worker
from cachemark.host import process
from cachemark.model.protocol import BeginSlices, Done, EndSlices, Ready, RunRequest, Slice
from tests.workers import worker_driver

CLIENTS = {
    name: client
    for name, client in registry(process.binary_path()).items()
    if name.endswith("/null")
}
SLICE = Slice(length_us=20_000, lead_in_us=5_000)


@pytest.mark.parametrize("name", CLIENTS)
def test_slices_leave_nothing_in_the_log(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Java says that it has found these.
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)
    client = CLIENTS[name]
    if missing := client.missing():
        pytest.skip(f"{missing}: {client.setup}")
    tape = worker_driver.write_tape(tmp_path, "--keys", "20", "--mix", "get=1", "--ops", "60")
    with worker_driver.started(client) as (worker, _):
        request = worker_driver.patient(servers=[], wire="none", tape=str(tape))
        assert isinstance(worker_driver.ask(worker, request), Ready)
        worker_driver.play(worker, RunRequest(phase="prefill"))
        assert isinstance(worker_driver.ask(worker, BeginSlices()), Ready)
        played_slices(worker, 2)
        assert isinstance(worker_driver.ask(worker, EndSlices()), Done)
        assert not worker.log_tail()


def played_slices(worker: Worker, least: int) -> None:
    """Play slices until this many had operations: a busy machine may play nothing in some."""
    for _ in range(MAX_SLICES):
        least -= getattr(worker_driver.ask(worker, SLICE), "ops", 0) > 0
        if not least:
            return
    pytest.fail(f"{worker.name}: no operations in {MAX_SLICES} slices")
