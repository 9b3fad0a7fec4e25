"""The failure of a test whose worker hangs tells where it hangs."""

import sys

import pytest

from cachemark.endpoints.worker import Worker
from cachemark.model.protocol import RunRequest
from tests.conftest import ROOT
from tests.workers import worker_driver

# What a runtime writes about the thread that reads requests.
_FRAMES = {"python/pymemcache": "worker.py", "go/null": "main.main", "java/null": '"main"'}


@pytest.mark.parametrize("name", ["never_done", "endless_progress"])
def test_a_run_without_end_shows_its_stack(name: str) -> None:
    command = [sys.executable, str(ROOT / "tests" / "bad_workers" / f"{name}.py")]
    with Worker(command) as worker:
        worker.hello(worker_driver.ANSWER_S)
        worker.send(RunRequest(phase="measure", ops=10))
        with pytest.raises(AssertionError, match="did not end within") as caught:
            worker_driver.finish(worker, 0.1)
    assert f'bad_workers/{name}.py", line' in str(caught.value)


@pytest.mark.parametrize("client", worker_driver.clients(_FRAMES))
def test_runtimes_show_where_their_threads_wait(client: worker_driver.Client) -> None:
    with worker_driver.started(client) as (worker, _):
        said = worker_driver.stacks(worker)
    assert _FRAMES[client.id] in said
