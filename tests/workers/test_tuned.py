"""The profile `tuned`: a client has it if its `worker.toml` says so, and refuses it otherwise."""

import shutil
from pathlib import Path

import pytest

from cachemark.endpoints.clients import registry
from cachemark.endpoints.servers import parse_spec, running
from cachemark.host import process
from cachemark.model.protocol import Ready, RunRequest, Unsupported
from tests.workers import worker_driver

CLIENTS = registry(process.binary_path())
# PyPy plays the same files.
WITH = [c.id for c in CLIENTS.values() if c.tuned and not c.id.startswith("pypy/")]
# One for each way in which a worker reads its options.
WITHOUT = ["python/bmemcached", "node/memjs", "ruby/dalli", "php/memcached"]
pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)


def prepared(client: str, folder: Path, server: str) -> tuple[object, int]:
    """The answer to `prepare`, and the hits of a short run if there was one."""
    if missing := CLIENTS[client].missing():
        pytest.skip(f"{missing}: {CLIENTS[client].setup}")
    tape = worker_driver.write_tape(
        folder, "--keys", "20", "--size", "30", "--mix", "get=1", "--ops", "100"
    )
    with worker_driver.started(CLIENTS[client]) as (worker, ready):
        wire = next(each for each in ready.capabilities if each in ("text", "binary", "meta"))
        setup = worker_driver.patient(
            servers=[server], wire=wire, tape=str(tape), options={"profile": "tuned"}
        )
        answer = worker_driver.ask(worker, setup)
        if not isinstance(answer, Ready):
            return answer, 0
        worker_driver.play(worker, RunRequest(phase="prefill"))
        played = worker_driver.play(worker, RunRequest(phase="measure", ops=50))
        return answer, played.operations["get"].hits


@pytest.mark.parametrize("client", WITH)
def test_a_client_with_recommended_settings_is_played_with_them(
    client: str, tmp_path: Path
) -> None:
    with running(parse_spec("memcached:threads=1,memory=16")) as server:
        answer, hits = prepared(client, tmp_path, server.addresses[0])
    assert isinstance(answer, Ready), answer
    assert hits == 50


@pytest.mark.parametrize("client", WITHOUT)
def test_a_client_without_them_refuses(client: str, tmp_path: Path) -> None:
    with running(parse_spec("memcached:threads=1,memory=16")) as server:
        answer, _ = prepared(client, tmp_path, server.addresses[0])
    assert isinstance(answer, Unsupported)
    assert "profile" in answer.reason, answer
