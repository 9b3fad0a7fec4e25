"""Open loops of the workers that have them: what was due is sent, late or not; nothing is lost."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from cachemark import histogram
from cachemark.clients import Client
from cachemark.protocol import Done, Prepare, Ready, Run, Stop, Unsupported
from cachemark.servers import parse_spec, running
from cachemark.worker import Worker
from tests.workers import driver, scripted

CLIENTS = pytest.mark.parametrize("client", driver.clients())
UNIFORM = ("--keys", "20", "--size", "30", "--mix", "get=1", "--schedule", "uniform")


def prepared(worker: Worker, address: str, tape: Path, connections: int = 1) -> bool:
    """Prepare and prefill; false if the worker says that it plays no open loop."""
    request = Prepare(servers=[address], tape=str(tape), connections=connections)
    answer = driver.ask(worker, request)
    if isinstance(answer, Unsupported):
        return False
    assert isinstance(answer, Ready), answer
    assert driver.play(worker, Run(phase="prefill")).operations["set"].ok == 20
    return True


@pytest.mark.skipif(shutil.which("memcached") is None, reason="apt-get install memcached")
@CLIENTS
def test_every_due_operation_is_done(client: Client, tmp_path: Path) -> None:
    tape = driver.write_tape(tmp_path, *UNIFORM, "--rate", "200", "--duration", "500ms")
    with (
        running(parse_spec("memcached:threads=1,memory=16")) as server,
        driver.started(client) as (worker, ready),
    ):
        if not prepared(worker, server.addresses[0], tape):
            assert "open_loop" not in ready.capabilities
            return
        before = server.stats()
        done = driver.play(worker, Run(phase="measure", duration_ms=750))
        after = server.stats()
    told = done.operations["get"]
    # 100 in the first pass of half a second, 50 in the first half of the second.
    assert told.ok == told.hits == told.attempts == 150
    assert driver.rise(before, after, "cmd_get") == 150
    assert done.unsent == 0
    assert done.lag is not None
    assert histogram.decode(done.lag).count == 150
    assert done.elapsed_ns >= 745e6
    assert told.response is not None
    assert told.service is not None
    response, service = histogram.decode(told.response), histogram.decode(told.service)
    assert response.count == service.count == 150
    assert response.mean() >= service.mean()


class _Stall:
    """Holds every reply back until it is told to go on."""

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()

    def __call__(self, key: bytes, data: bytes) -> bytes:
        self.asked.set()
        self.go_on.wait()
        return scripted.value(key, data)


@CLIENTS
def test_a_stall_is_in_the_response_time_of_all_that_waited(client: Client, tmp_path: Path) -> None:
    tape = driver.write_tape(tmp_path, *UNIFORM, "--rate", "100", "--duration", "500ms")
    stall = _Stall()
    with scripted.scripted(stall) as server, driver.started(client) as (worker, _):
        if not prepared(worker, server.address, tape):
            return
        worker.send(Run(phase="measure", duration_ms=500))
        assert stall.asked.wait(10)
        threading.Timer(0.3, stall.go_on.set).start()  # the length of the stall that is measured
        done = driver.finish(worker)
    assert isinstance(done, Done)
    told = done.operations["get"]
    assert told.ok == 50
    assert done.max_in_flight == 1
    # Some 30 came due while one connection waited: they were bound, and waited 150 ms on average.
    assert done.bound >= 25
    assert told.response is not None
    assert told.service is not None
    response, service = histogram.decode(told.response), histogram.decode(told.service)
    assert service.percentile(90) < 100e6 < response.percentile(75)
    assert service.max() >= 290e6


@CLIENTS
def test_what_a_stop_cuts_off_is_unsent(client: Client, tmp_path: Path) -> None:
    tape = driver.write_tape(tmp_path, *UNIFORM, "--rate", "1000", "--duration", "1s")
    stall = _Stall()
    with scripted.scripted(stall) as server, driver.started(client) as (worker, ready):
        if client.id == "native" or not prepared(worker, server.address, tape):
            return
        worker.send(Run(phase="measure", duration_ms=60_000))
        assert stall.asked.wait(10)
        threading.Timer(0.2, lambda: (worker.send(Stop()), stall.go_on.set())).start()
        done = driver.finish(worker)
    assert isinstance(done, Done)
    assert "open_loop" in ready.capabilities
    assert done.unsent >= 100
    told = done.operations["get"]
    assert told.response is not None
    assert histogram.decode(told.response).count == told.ok + done.unsent
