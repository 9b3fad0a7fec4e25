"""A server that loses writes, or answers with older values, is seen by the workers' own reads."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cachemark.endpoints.clients import Client
from cachemark.endpoints.servers import parse_spec, running
from cachemark.endpoints.worker import Worker
from cachemark.model.protocol import (
    BeginSlices,
    Done,
    EndSlices,
    Ready,
    RunRequest,
    Slice,
    SliceDone,
)
from tests.conftest import ROOT
from tests.workers import worker_driver

pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)

KEYS = 400
TAPE = ("--keys", str(KEYS), "--size", "100", "--mix", "get=1,set=1", "--ops", "4000")
GENERATIONS = ("--generations", "1")
# One library at least of each language that reads and writes on its loop, with a wire of text.
NETWORK = [
    "c/libmemcached", "go/gomemcache", "java/spymemcached", "native", "node/memcached",
    "perl/fast", "php/memcached", "python/pymemcache", "reference", "ruby/dalli", "rust/memcache",
]  # fmt: skip
CLIENTS = [each for each in worker_driver.clients() if each.id in NETWORK]


@contextmanager
def lying(lie: str, honest_writes: int) -> Generator[str]:
    """The address of a server that lies after so many writes."""
    program = f"command:{sys.executable} {ROOT / 'tests/lying_server.py'}"
    with running(parse_spec(f"{program} {lie} {honest_writes} {{port}}")) as server:
        yield server.addresses[0]


@contextmanager
def prepared(client: Client, address: str, tape: Path, threads: int = 1) -> Generator[Worker]:
    """A worker whose tape is prepared and whose keys are stored."""
    with worker_driver.started(client) as (worker, ready):
        wire = "text" if "text" in ready.capabilities else "binary"
        if threads > 1 and "threads" not in ready.capabilities:
            pytest.skip("its callers are processes or tasks")
        request = worker_driver.patient(
            tape=str(tape), servers=[address], wire=wire, threads=threads, connections=threads
        )
        assert isinstance(worker_driver.ask(worker, request), Ready)
        done = worker_driver.play(worker, RunRequest(phase="prefill"))
        assert done.operations["set"].ok == KEYS
        yield worker


def wrong_gets(done: Done) -> int:
    """The gets with a wrong value; nothing else failed."""
    get, put = done.operations["get"], done.operations["set"]
    assert (get.errors, put.errors, put.wrong_values) == ({}, {}, 0)
    assert get.ok + get.wrong_values == get.attempts
    return get.wrong_values


def test_there_is_a_client_of_each_language() -> None:
    assert {each.id for each in CLIENTS} == set(NETWORK)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("lie", "honest_writes"),
    [("lost", KEYS), ("lost", KEYS + 2500), ("stale", KEYS)],
    ids=["lost-after-prefill", "lost-later", "stale"],
)
def test_a_lie_about_writes_is_a_wrong_value(
    client: Client, lie: str, honest_writes: int, tmp_path: Path
) -> None:
    tape = worker_driver.write_tape(tmp_path, *TAPE, *GENERATIONS)
    with (
        lying(lie, honest_writes) as address,
        prepared(client, address, tape) as worker,
    ):
        first = wrong_gets(worker_driver.play(worker, RunRequest(phase="measure", ops=4000)))
        again = wrong_gets(worker_driver.play(worker, RunRequest(phase="measure", ops=4000)))
    assert again >= 20
    assert first >= 20 or honest_writes > KEYS


@pytest.mark.parametrize("client", CLIENTS)
def test_an_honest_server_is_never_accused(client: Client, tmp_path: Path) -> None:
    tape = worker_driver.write_tape(tmp_path, *TAPE, *GENERATIONS)
    with (
        running(parse_spec("memcached:threads=1,memory=64")) as server,
        prepared(client, server.addresses[0], tape) as worker,
    ):
        for _ in range(3):
            assert (
                wrong_gets(worker_driver.play(worker, RunRequest(phase="measure", ops=9001))) == 0
            )
        assert isinstance(worker_driver.ask(worker, BeginSlices()), Ready)
        for _ in range(20):
            answer = worker_driver.ask(worker, Slice(length_us=5000, lead_in_us=1000))
            assert isinstance(answer, SliceDone)
            assert answer.errors == 0
        done = worker_driver.ask(worker, EndSlices())
        assert isinstance(done, Done)
        assert wrong_gets(done) == 0


@pytest.mark.parametrize("client", CLIENTS)
def test_callers_in_threads_find_a_lie_and_accuse_nobody_else(
    client: Client, tmp_path: Path
) -> None:
    tape = worker_driver.write_tape(tmp_path, *TAPE, "--generations", "3")
    run = RunRequest(phase="measure", ops=9000)
    with (
        running(parse_spec("memcached:threads=2,memory=64")) as server,
        prepared(client, server.addresses[0], tape, 3) as worker,
    ):
        assert [wrong_gets(worker_driver.play(worker, run)) for _ in range(3)] == [0, 0, 0]
    for lie in ("lost", "stale"):
        with lying(lie, KEYS) as address, prepared(client, address, tape, 3) as worker:
            assert wrong_gets(worker_driver.play(worker, run)) >= 20


@pytest.mark.parametrize("client", CLIENTS)
def test_a_failure_ends_all_accusations(client: Client, tmp_path: Path) -> None:
    """A write that failed may still come, behind a later one: nobody can tell what is stale."""
    ops = ("--keys", str(KEYS), "--size", "100", "--sequence", "set get get", "--ops", "3000")
    tape = worker_driver.write_tape(tmp_path, *ops, *GENERATIONS)
    if client.id == "ruby/dalli":
        pytest.skip("it speaks binary, in which the server here refuses nothing")
    with lying("refused", KEYS) as address, prepared(client, address, tape) as worker:
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=3000))
        assert done.operations["set"].errors
        assert done.operations["get"].wrong_values == 0


@pytest.mark.parametrize("client", CLIENTS)
def test_without_generations_nobody_is_accused(client: Client, tmp_path: Path) -> None:
    """What a lost write shows nobody can know then: this is why there are generations."""
    tape = worker_driver.write_tape(tmp_path, *TAPE)
    with lying("lost", KEYS) as address, prepared(client, address, tape) as worker:
        assert wrong_gets(worker_driver.play(worker, RunRequest(phase="measure", ops=4000))) == 0


@pytest.mark.parametrize("client", CLIENTS)
def test_a_tape_for_other_callers_accuses_nobody(client: Client, tmp_path: Path) -> None:
    tape = worker_driver.write_tape(tmp_path, *TAPE, "--generations", "2")
    with lying("lost", KEYS) as address, prepared(client, address, tape) as worker:
        assert wrong_gets(worker_driver.play(worker, RunRequest(phase="measure", ops=4000))) == 0
