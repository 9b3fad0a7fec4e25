"""A server that loses writes, or answers with older values, is seen by the workers' own reads."""

import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cachemark.endpoints.clients import Client
from cachemark.endpoints.servers import RunningServer, parse_spec, running
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
from tests.lying_server import lying
from tests.workers import worker_driver

pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)

KEYS = 100
OPS = 1000
TAPE = ("--keys", str(KEYS), "--size", "100", "--mix", "get=1,set=1", "--ops", str(OPS))
GENERATIONS = ("--generations", "1")
# One library at least of each language that reads and writes on its loop, with a wire of text.
NETWORK = [
    "c/libmemcached", "go/gomemcache", "java/spymemcached", "native", "node/memcached",
    "perl/fast", "php/memcached", "python/pymemcache", "reference", "ruby/dalli", "rust/memcache",
]  # fmt: skip
CLIENTS = [each for each in worker_driver.clients() if each.id in NETWORK]
# Those whose callers are threads, not processes or tasks.
THREADED = [
    each
    for each in CLIENTS
    if (ready := worker_driver.claims(str(each.id))) and "threads" in ready.capabilities
]
# The server here refuses nothing in binary.
TEXT = [each for each in CLIENTS if each.id != "ruby/dalli"]


class Player(NamedTuple):
    """A client's worker, which all tests share, and what it said to `hello`."""

    client: Client
    worker: Worker
    ready: Ready


@pytest.fixture(scope="module", params=CLIENTS)
def player(request: Any) -> Generator[Player]:
    """One worker for all tests of a client: what one of them planted must not reach the next."""
    client: Client = request.param
    with worker_driver.started(client) as (worker, ready):
        yield Player(client, worker, ready)


@pytest.fixture(scope="module")
def two_servers() -> Generator[RunningServer]:
    with running(parse_spec("cluster:2:memcached:threads=2,memory=64")) as servers:
        yield servers


@pytest.fixture
def honest(two_servers: RunningServer) -> list[str]:
    """The addresses of two empty servers."""
    two_servers.remove_items()
    return two_servers.addresses


def prepared(player: Player, address: str, tape: Path, threads: int = 1, **fields: Any) -> Worker:
    """The worker, with its tape prepared and its keys stored; `fields` are of the request."""
    wire = "text" if "text" in player.ready.capabilities else "binary"
    common = {"servers": [address], "wire": wire, "threads": threads, "connections": threads}
    request = worker_driver.patient(tape=str(tape), **(common | fields))
    assert isinstance(worker_driver.ask(player.worker, request), Ready)
    done = worker_driver.play(player.worker, RunRequest(phase="prefill"))
    assert done.operations["set"].ok == KEYS
    return player.worker


def wrong_gets(done: Done) -> int:
    """The gets (or mgets) with a wrong value; nothing else failed."""
    put = done.operations.get("set") or done.operations["set_noreply"]
    get = done.operations.get("get") or done.operations["mget"]
    assert (get.errors, put.errors, put.wrong_values) == ({}, {}, 0)
    assert get.ok + get.wrong_values == get.attempts
    return get.wrong_values


def test_there_is_a_client_of_each_language() -> None:
    assert {each.id for each in CLIENTS} == set(NETWORK)
    assert {"c/libmemcached", "java/spymemcached", "native"} <= {each.id for each in THREADED}


@pytest.mark.parametrize(
    ("lie", "honest_writes"),
    [("lost", KEYS), ("lost", KEYS + OPS // 2), ("stale", KEYS)],
    ids=["lost-after-prefill", "lost-later", "stale"],
)
def test_a_lie_about_writes_is_a_wrong_value(
    player: Player, honest: list[str], lie: str, honest_writes: int, tmp_path: Path
) -> None:
    tape = worker_driver.write_tape(tmp_path, *TAPE, *GENERATIONS)
    with lying(lie, honest_writes, honest[0]) as address:
        worker = prepared(player, address, tape)
        first = wrong_gets(worker_driver.play(worker, RunRequest(phase="measure", ops=OPS)))
        again = wrong_gets(worker_driver.play(worker, RunRequest(phase="measure", ops=OPS)))
    assert again >= 20
    assert first >= 20 or honest_writes > KEYS


def test_an_honest_server_is_never_accused(
    player: Player, honest: list[str], tmp_path: Path
) -> None:
    tape = worker_driver.write_tape(tmp_path, *TAPE, *GENERATIONS)
    run = RunRequest(phase="measure", ops=2 * OPS + 1)
    worker = prepared(player, honest[0], tape)
    assert [wrong_gets(worker_driver.play(worker, run)) for _ in range(2)] == [0, 0]
    assert isinstance(worker_driver.ask(worker, BeginSlices()), Ready)
    counted = slices = 0
    while slices < 20 or counted < OPS:  # a client without a CPU plays nothing in a slice
        answer = worker_driver.ask(worker, Slice(length_us=5000, lead_in_us=1000))
        assert isinstance(answer, SliceDone)
        assert answer.errors == 0
        counted, slices = counted + answer.ops, slices + 1
    done = worker_driver.ask(worker, EndSlices())
    assert isinstance(done, Done)
    assert wrong_gets(done) == 0


@pytest.mark.parametrize("player", THREADED, indirect=True, scope="module")
def test_callers_in_threads_find_a_lie_and_accuse_nobody_else(
    player: Player, honest: list[str], two_servers: RunningServer, tmp_path: Path
) -> None:
    tape = worker_driver.write_tape(tmp_path, *TAPE, "--generations", "3")
    run = RunRequest(phase="measure", ops=4 * OPS)
    worker = prepared(player, honest[0], tape, 3)
    assert [wrong_gets(worker_driver.play(worker, run)) for _ in range(2)] == [0, 0]
    for lie, least in (("lost", 20), ("stale", 1)):
        two_servers.remove_items()
        with lying(lie, KEYS, honest[0]) as address:
            worker = prepared(player, address, tape, 3)
            assert wrong_gets(worker_driver.play(worker, run)) >= least


@pytest.mark.parametrize("player", TEXT, indirect=True, scope="module")
def test_a_failure_ends_all_accusations(player: Player, honest: list[str], tmp_path: Path) -> None:
    """A write that failed may still come, behind a later one: no client can know what is stale."""
    ops = ("--keys", str(KEYS), "--size", "100", "--sequence", "set get get", "--ops", str(OPS))
    tape = worker_driver.write_tape(tmp_path, *ops, *GENERATIONS)
    with lying("refused", KEYS, honest[0]) as address:
        worker = prepared(player, address, tape)
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=OPS))
        assert done.operations["set"].errors
        assert done.operations["get"].wrong_values == 0


def test_without_generations_nobody_is_accused(
    player: Player, honest: list[str], tmp_path: Path
) -> None:
    """Here a lost write cannot be seen: this is why there are generations."""
    tape = worker_driver.write_tape(tmp_path, *TAPE)
    with lying("lost", KEYS, honest[0]) as address:
        worker = prepared(player, address, tape)
        assert wrong_gets(worker_driver.play(worker, RunRequest(phase="measure", ops=OPS))) == 0


def test_a_tape_for_other_callers_accuses_nobody(
    player: Player, honest: list[str], tmp_path: Path
) -> None:
    tape = worker_driver.write_tape(tmp_path, *TAPE, "--generations", "2")
    with lying("lost", KEYS, honest[0]) as address:
        worker = prepared(player, address, tape)
        assert wrong_gets(worker_driver.play(worker, RunRequest(phase="measure", ops=OPS))) == 0
