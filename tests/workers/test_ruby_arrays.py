"""Ruby's `values=array`: memcached_bench's value, an empty array, which the library marshals."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cachemark.endpoints.client_readiness import query_worker
from cachemark.endpoints.clients import registry
from cachemark.endpoints.servers import RunningServer, parse_spec, running
from cachemark.endpoints.worker import Worker
from cachemark.host import process
from cachemark.model.protocol import Ready, RunRequest, Unsupported
from tests.endpoints.servers.raw_requests import ask
from tests.workers import worker_driver

CLIENTS = registry(process.binary_path())
ARRAY = b"\x04\x08[\x00"
ANOTHER_ARRAY = b"\x04\x08[\x06i\x06"
SERIALISED_FLAG = 1
OPTIONS = {"profile": "defaults", "values": "array"}

pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)


@contextmanager
def prefilled(
    client: str, folder: Path, mix: str, size: int
) -> Generator[tuple[Worker, RunningServer]]:
    """A worker that has stored ten keys, and its server."""
    answer = query_worker(CLIENTS[client])
    if answer.ready is None:
        pytest.skip(answer.state)
    shape = ("--keys", "10", "--key-pattern", "key{index}", "--distribution", "sequential")
    tape = worker_driver.write_tape(
        folder, *shape, "--size", str(size), "--mix", mix, "--run", "5", "--ops", "20"
    )
    with (
        running(parse_spec("memcached:threads=1,memory=16")) as server,
        worker_driver.started(CLIENTS[client]) as (worker, _),
    ):
        setup = worker_driver.patient(
            servers=server.addresses, wire="binary", tape=str(tape), options=OPTIONS
        )
        assert isinstance(worker_driver.ask(worker, setup), Ready)
        stored = worker_driver.play(worker, RunRequest(phase="prefill")).operations["set"]
        assert (stored.ok, stored.errors) == (10, {})
        yield worker, server


@pytest.mark.parametrize("mix", ["get=1", "set=1", "mget=1"])
def test_the_library_is_given_an_array_and_gives_it_back(mix: str, tmp_path: Path) -> None:
    with prefilled("ruby/dalli", tmp_path, mix, len(ARRAY)) as (worker, server):
        reply = ask(server.addresses[0], b"get key0\r\n", b"END\r\n")
        assert reply == b"VALUE key0 1 4\r\n%s\r\nEND\r\n" % ARRAY
        kind = mix.partition("=")[0]
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=20)).operations[kind]
        keys = 5 if kind == "mget" else 1
        assert (done.ok, done.errors) == (20, {})
        assert done.hits == (0 if kind == "set" else 20 * keys)
        assert done.value_bytes == 20 * keys * len(ARRAY)


def test_another_array_is_a_wrong_value(tmp_path: Path) -> None:
    with prefilled("ruby/dalli", tmp_path, "get=1", len(ARRAY)) as (worker, server):
        head = f"set key0 {SERIALISED_FLAG} 0 {len(ANOTHER_ARRAY)}\r\n".encode()
        assert ask(server.addresses[0], head + ANOTHER_ARRAY + b"\r\n") == b"STORED\r\n"
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=20)).operations["get"]
        assert (done.ok, done.wrong_values) == (18, 2)


def test_longer_values_are_bytes_as_before(tmp_path: Path) -> None:
    with prefilled("ruby/mem_cache_store", tmp_path, "get=1", 50) as (worker, _):
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=20)).operations["get"]
        assert (done.ok, done.hits, done.value_bytes) == (20, 20, 20 * 50)


def test_raw_values_are_no_arrays(tmp_path: Path) -> None:
    client = CLIENTS["ruby/dalli"]
    if missing := client.missing():
        pytest.skip(missing)
    tape = worker_driver.write_tape(tmp_path, "--keys", "1", "--mix", "get=1", "--ops", "1")
    with worker_driver.started(client) as (worker, _):
        setup = worker_driver.patient(
            servers=["127.0.0.1:1"], wire="binary", tape=str(tape), options={"values": "array"}
        )
        answer = worker_driver.ask(worker, setup)
    assert isinstance(answer, Unsupported)
    assert "@defaults" in answer.reason
