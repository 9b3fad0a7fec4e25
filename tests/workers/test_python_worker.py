"""The Python worker's own edges: its command line, bad tapes, what a client refuses, no set-up."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cachemark.endpoints.clients import Client, registry
from cachemark.endpoints.servers import parse_spec, running
from cachemark.endpoints.worker import Worker
from cachemark.host import process
from cachemark.model.protocol import (
    BeginSlices,
    Done,
    Failure,
    Hello,
    Prepare,
    Ready,
    RunRequest,
    Slice,
    SliceDone,
    Unsupported,
)
from tests.conftest import ROOT
from tests.workers import worker_driver

FOLDER = ROOT / "workers" / "python"
CLIENT = registry(process.binary_path())["python/pymemcache"]
pytestmark = pytest.mark.skipif(bool(CLIENT.missing()), reason=CLIENT.setup)
MIXED = ("--keys", "20", "--size", "10..50", "--mix", "get=2,mget=1,set=1,mset=1", "--ops", "40")


def test_an_unknown_client_is_named_with_the_known_ones() -> None:
    command = [CLIENT.command[0], str(FOLDER / "worker.py"), "pymemcached"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    for name in ("pymemcache", "pylibmc", "python-memcached", "bmemcached", "emcache", "null"):
        assert name in line


def test_a_library_that_is_missing_is_an_answer() -> None:
    bare = Client(id="bare", language="", command=[sys.executable, "-S", *CLIENT.command[1:]])
    with Worker(bare.command) as worker:
        answer = worker_driver.ask(worker, Hello())
    assert isinstance(answer, Unsupported)
    assert "pymemcache is not installed" in answer.reason
    assert answer.remedy == "cachemark setup python"


REFUSED: dict[str, dict[str, Any]] = {
    "depth": {"depth": 2},
    "connections": {"connections": 2},
    "wire": {"wire": "binary"},
    "no server": {"servers": []},
    "options": {"options": {"colour": "blue"}},
    "an option's value": {"options": {"profile": "fast"}},
    "hashing": {"options": {"hashing": "ketama"}},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_do_is_unsupported(name: str, tmp_path: Path) -> None:
    tape = worker_driver.write_tape(tmp_path, *MIXED)
    with worker_driver.started(CLIENT) as (worker, _):
        fields: dict[str, Any] = {"servers": ["127.0.0.1:1"], "tape": str(tape), **REFUSED[name]}
        answer = worker_driver.ask(worker, Prepare(**fields))
    assert isinstance(answer, Unsupported), answer
    assert answer.reason


def test_a_batch_with_a_key_twice_is_unsupported(tmp_path: Path) -> None:
    mix = ("--mix", "mget=1", "--run", "3", "--distribution", "constant", "--ops", "5")
    tape = worker_driver.write_tape(tmp_path, "--keys", "5", *mix)
    with worker_driver.started(CLIENT) as (worker, _):
        answer = worker_driver.ask(worker, Prepare(servers=["127.0.0.1:1"], tape=str(tape)))
    assert isinstance(answer, Unsupported)
    assert "twice" in answer.reason


def test_wrong_requests_are_answered_and_survived(tmp_path: Path) -> None:
    with worker_driver.started(CLIENT) as (worker, _):
        early = worker_driver.ask(worker, RunRequest(phase="measure"))
        assert isinstance(early, Failure)
        assert early.kind == "protocol"
        answer = worker_driver.ask(worker, Prepare(servers=["nowhere"], tape=str(tmp_path)))
        assert isinstance(answer, Failure)
        worker.bye()


@contextmanager
def pooled(library: str, folder: Path, *tape: str) -> Generator[tuple[Worker, Done]]:
    """A worker with eight tasks, and how it stored the keys of a tape of gets."""
    client = registry(process.binary_path())[f"python/{library}"]
    path = worker_driver.write_tape(folder, *tape, "--mix", "get=1")
    with (
        running(parse_spec("embedded")) as server,
        worker_driver.started(client) as (worker, _),
    ):
        fields = {"servers": server.addresses, "tape": str(path), "depth": 8}
        assert isinstance(worker_driver.ask(worker, worker_driver.patient(**fields)), Ready)
        yield worker, worker_driver.play(worker, RunRequest(phase="prefill"))


@pytest.mark.parametrize("library", ["aiomcache", "emcache"])
def test_tasks_without_a_connection_take_no_part_in_slices(library: str, tmp_path: Path) -> None:
    # Both pools give a connection to the same task or two as long as these have calls.
    with pooled(library, tmp_path, "--keys", "3000", "--ops", "3000") as (worker, stored):
        assert stored.operations["set"].ok == 3000
        assert isinstance(worker_driver.ask(worker, BeginSlices()), Ready)
        done = worker_driver.ask(worker, Slice(length_us=300_000, lead_in_us=100_000))
    assert isinstance(done, SliceDone), done
    assert done.ops > 8
    assert done.elapsed_ns >= 150_000_000, "the mean has tasks that did nothing"


def test_a_prefill_leaves_no_task_without_a_connection(tmp_path: Path) -> None:
    with pooled("aiomcache", tmp_path, "--keys", "4000", "--ops", "10") as (_, stored):
        assert stored.max_in_flight == 1
