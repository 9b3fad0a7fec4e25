"""Every worker in trouble: what goes wrong is counted as what it is, and nothing hangs."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from pathlib import Path

import pytest

from cachemark import histogram
from cachemark.clients import Client
from cachemark.protocol import Done, Failure, Prepare, Ready, Run, Stop
from cachemark.servers import RunningServer, parse_spec, running
from cachemark.worker import Worker
from tests.workers import driver, scripted

CLIENTS = pytest.mark.parametrize("client", driver.clients())
needs_memcached = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)
TIMEOUT_MS = 300
MEMCACHED = "memcached:threads=1,memory=16"
GETS = ("--keys", "20", "--size", "30", "--mix", "get=1", "--ops", "100")


def prepared(worker: Worker, address: str, tape: Path) -> None:
    """Prepare and prefill, both without fail."""
    request = Prepare(servers=[address], tape=str(tape), timeout_ms=TIMEOUT_MS)
    answer = driver.ask(worker, request)
    assert isinstance(answer, Ready), answer
    prefill = driver.play(worker, Run(phase="prefill"))
    assert prefill.operations["set"].ok == 20


def until_it_plays(server: RunningServer, before: int = 0) -> None:
    """Wait until gets have reached the server."""
    while int(server.stats()["cmd_get"]) <= before:
        pass


@CLIENTS
def test_a_wrong_byte_is_a_wrong_value(client: Client, tmp_path: Path) -> None:
    tape = driver.write_tape(tmp_path, *GETS)
    with scripted.scripted(scripted.corrupted) as server, driver.started(client) as (worker, _):
        prepared(worker, server.address, tape)
        told = driver.play(worker, Run(phase="measure", ops=50)).operations["get"]
    assert (told.attempts, told.wrong_values) == (50, 50)
    assert (told.ok, told.hits, told.misses, told.value_bytes) == (0, 0, 0, 0)
    assert not told.errors


@CLIENTS
def test_silence_is_a_timeout_and_no_miss(client: Client, tmp_path: Path) -> None:
    tape = driver.write_tape(tmp_path, *GETS)
    with scripted.scripted(scripted.silence) as server, driver.started(client) as (worker, _):
        prepared(worker, server.address, tape)
        done = driver.play(worker, Run(phase="measure", duration_ms=TIMEOUT_MS), 10)
    told = done.operations["get"]
    assert (told.ok, told.hits, told.misses) == (0, 0, 0)
    assert told.errors["timeout"] >= 1
    assert told.attempts == sum(told.errors.values())
    if client.id != "reference":  # which leaves the time of a time-out out
        assert told.response is not None
        assert histogram.decode(told.response).max() >= TIMEOUT_MS * 1e6 * 0.99


@CLIENTS
def test_an_error_reply_is_an_error_and_no_miss(client: Client, tmp_path: Path) -> None:
    tape = driver.write_tape(tmp_path, *GETS)
    with scripted.scripted(scripted.server_error) as server, driver.started(client) as (worker, _):
        prepared(worker, server.address, tape)
        told = driver.play(worker, Run(phase="measure", ops=3), 10).operations["get"]
    assert (told.ok, told.misses, told.hits, told.wrong_values) == (0, 0, 0, 0)
    assert told.attempts == sum(told.errors.values()) == 3


@CLIENTS
def test_no_server_is_an_error_at_prepare(client: Client, tmp_path: Path) -> None:
    tape = driver.write_tape(tmp_path, *GETS)
    with socket.socket() as taken:  # a port that nobody listens on
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with driver.started(client) as (worker, _):
            request = Prepare(servers=[address], tape=str(tape), timeout_ms=TIMEOUT_MS)
            answer = driver.ask(worker, request)
            assert isinstance(answer, Failure), answer
            assert answer.kind == "connect"
            assert client.id == "reference" or address in answer.text


@needs_memcached
@CLIENTS
def test_a_server_that_is_killed(client: Client, tmp_path: Path) -> None:
    tape = driver.write_tape(tmp_path, *GETS)
    with running(parse_spec(MEMCACHED)) as server, driver.started(client) as (worker, _):
        prepared(worker, server.addresses[0], tape)
        worker.send(Run(phase="measure", duration_ms=700))
        until_it_plays(server)
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        done = driver.finish(worker, 10)
    assert isinstance(done, Done)
    told = done.operations["get"]
    assert told.hits == told.ok > 0
    assert told.misses == told.wrong_values == 0
    assert sum(told.errors.values()) == told.attempts - told.ok > 0


@needs_memcached
@CLIENTS
def test_a_stop_ends_a_run(client: Client, tmp_path: Path) -> None:
    if client.id == "reference":
        pytest.skip("it reads a stop once its run is over")
    tape = driver.write_tape(tmp_path, *GETS)
    with running(parse_spec(MEMCACHED)) as server, driver.started(client) as (worker, _):
        prepared(worker, server.addresses[0], tape)
        worker.send(Run(phase="measure", duration_ms=600_000))
        until_it_plays(server)
        worker.send(Stop())
        done = driver.finish(worker, 10)
        assert isinstance(done, Done)
        played = int(server.stats()["cmd_get"])
        assert done.operations["get"].ok == played
        again = driver.play(worker, Run(phase="measure", ops=10))
        assert again.operations["get"].ok == 10
        worker.bye()


@needs_memcached
@CLIENTS
def test_the_end_of_stdin_ends_the_process(client: Client, tmp_path: Path) -> None:
    if client.id == "reference":
        pytest.skip("it reads the end of stdin once its run is over")
    tape = driver.write_tape(tmp_path, *GETS)
    with running(parse_spec(MEMCACHED)) as server, driver.started(client) as (worker, _):
        prepared(worker, server.addresses[0], tape)
        worker.send(Run(phase="measure", duration_ms=600_000))
        until_it_plays(server)
        stdin = worker._child.popen.stdin  # pyright: ignore[reportPrivateUsage]
        assert stdin is not None
        stdin.close()
        assert worker._child.wait(10)  # pyright: ignore[reportPrivateUsage]


@CLIENTS
def test_the_bytes_on_the_wire(client: Client, tmp_path: Path) -> None:
    """Raw values, flags 0, the tape's expiry time: the same for every library."""
    arguments = ("--keys", "20", "--size", "10..5000", "--mix", "set=1", "--exptime", "77")
    tape = driver.write_tape(tmp_path, *arguments, "--compressibility", "1", "--ops", "100")
    with scripted.scripted() as server, driver.started(client) as (worker, _):
        prepared(worker, server.address, tape)
        done = driver.play(worker, Run(phase="measure", ops=100))
        assert done.operations["set"].ok == 100
        stored = driver.tape_writes(tape)
        assert server.writes == stored
