"""The Java worker's own edges: shared clients, futures, class paths, clusters, bad tapes."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from cachemark.endpoints.clients import registry
from cachemark.endpoints.servers import parse_spec, running
from cachemark.host import process
from cachemark.model.protocol import Ready, RunRequest, Unsupported
from tests.workers import worker_driver
from tests.workers.worker_driver import Workers, workers

__all__ = ["workers"]

CLIENTS = registry(process.binary_path())
SPY = CLIENTS["java/spymemcached"]
pytestmark = [
    pytest.mark.skipif(bool(SPY.missing()), reason=SPY.setup),
    pytest.mark.skipif(shutil.which("memcached") is None, reason="apt-get install memcached"),
]
MEMCACHED = "memcached:threads=1,memory=16"
GETS = ("--keys", "20", "--size", "30", "--mix", "get=1", "--ops", "100")
MIXED = ("--keys", "20", "--size", "10..50", "--mix", "get=2,mget=1,set=1,delete=1", "--ops", "40")
NETWORK = ("spymemcached", "elasticache", "folsom", "xmemcached")
FUTURES = ("spymemcached", "elasticache", "folsom")


def prepared(workers: Workers, client: str, tape: Path, servers: list[str], **fields: Any) -> Any:
    """The answer of a worker to a prepare."""
    worker, _ = workers(f"java/{client}")
    return worker_driver.ask(
        worker, worker_driver.patient(servers=servers, tape=str(tape), **fields)
    )


@pytest.mark.parametrize(("client", "depth"), [*((name, 8) for name in FUTURES), ("xmemcached", 1)])
def test_callers_share_clients(workers: Workers, client: str, depth: int, tmp_path: Path) -> None:
    """Four callers on two connections, each with its operations outstanding; each read is one."""
    tape = worker_driver.write_tape(tmp_path, *GETS)
    worker, ready = workers(f"java/{client}")
    with running(parse_spec(MEMCACHED)) as server:
        assert "shared" in ready.capabilities
        before = server.stats()
        setup = worker_driver.patient(
            servers=server.addresses, threads=4, connections=2, depth=depth, tape=str(tape)
        )
        answer = worker_driver.ask(worker, setup)
        assert isinstance(answer, Ready), answer
        connected = server.stats()
        assert worker_driver.play(worker, RunRequest(phase="prefill")).operations["set"].ok == 20
        filled = server.stats()
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=2002))
        after = server.stats()
    # The second is that of `stats` itself.
    assert worker_driver.rise(before, connected, "total_connections") - 1 <= 2
    assert done.max_in_flight == 4 * depth
    assert done.operations["get"].hits == done.operations["get"].ok == 2002
    assert worker_driver.rise(filled, after, "cmd_get") == 2002


def test_waiting_gets_are_merged_only_as_the_library_comes(
    workers: Workers, tmp_path: Path
) -> None:
    """xmemcached with many callers that want the same key."""
    tape = worker_driver.write_tape(tmp_path, "--keys", "1", "--mix", "get=1", "--ops", "64")
    sent: dict[str, int] = {}
    worker, _ = workers("java/xmemcached")
    with running(parse_spec(MEMCACHED)) as server:
        for profile in ("common", "defaults"):
            setup = worker_driver.patient(
                servers=server.addresses,
                threads=16,
                tape=str(tape),
                options={"profile": profile},
            )
            assert isinstance(worker_driver.ask(worker, setup), Ready)
            worker_driver.play(worker, RunRequest(phase="prefill"))
            before = server.stats()
            done = worker_driver.play(worker, RunRequest(phase="measure", ops=20_000))
            assert done.operations["get"].hits == 20_000
            sent[profile] = worker_driver.rise(before, server.stats(), "cmd_get")
    assert sent["common"] == 20_000
    assert sent["defaults"] < 20_000


def test_a_fork_of_a_package_has_its_own_class_path(workers: Workers) -> None:
    told = [workers(f"java/{name}")[1] for name in ("spymemcached", "elasticache")]
    versions = {ready.library: ready.library_version for ready in told}
    assert versions == {"spymemcached": "2.12.3", "elasticache-java-cluster-client": "1.2.4"}


@pytest.mark.parametrize(
    ("client", "hashing"),
    [("spymemcached", "default"), ("spymemcached", "ketama"), ("xmemcached", "ketama"),
     ("folsom", "default")],
)  # fmt: skip
def test_keys_are_spread_over_servers(
    workers: Workers, client: str, hashing: str, tmp_path: Path
) -> None:
    tape = worker_driver.write_tape(
        tmp_path, "--keys", "200", "--mix", "get=1,mget=1", "--ops", "100"
    )
    worker, ready = workers(f"java/{client}")
    with running(parse_spec(MEMCACHED)) as one, running(parse_spec(MEMCACHED)) as two:
        assert "cluster" in ready.capabilities
        servers = [*one.addresses, *two.addresses]
        setup = worker_driver.patient(servers=servers, tape=str(tape), options={"hashing": hashing})
        assert isinstance(worker_driver.ask(worker, setup), Ready)
        worker_driver.play(worker, RunRequest(phase="prefill"))
        counts = [int(server.stats()["curr_items"]) for server in (one, two)]
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=200))
    assert sum(counts) == 200
    assert min(counts) >= 10
    assert all(told.misses == 0 and not told.errors for told in done.operations.values())


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "depth of blocking calls": ("xmemcached", {"depth": 2}),
    "connections": ("folsom", {"threads": 4, "connections": 3}),
    "more connections than callers": ("folsom", {"connections": 2}),
    "wire": ("folsom", {"wire": "meta"}),
    "another ketama": ("folsom", {"options": {"hashing": "ketama"}}),
    "options": ("spymemcached", {"options": {"colour": "blue"}}),
    "depth with several servers": (
        "spymemcached",
        {"servers": ["127.0.0.1:1", "127.0.0.1:2"], "depth": 2},
    ),
    "a cache with a server": ("caffeine", {"wire": "none"}),
    "a client without one": ("folsom", {"servers": []}),
    "a path": ("folsom", {"servers": ["unix:/nowhere"]}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_do_is_unsupported(workers: Workers, name: str, tmp_path: Path) -> None:
    client, fields = REFUSED[name]
    tape = worker_driver.write_tape(tmp_path, *GETS)
    answer = prepared(workers, client, tape, **{"servers": ["127.0.0.1:1"], **fields})
    assert isinstance(answer, Unsupported), answer
    assert answer.reason


def test_depth_and_a_schedule_are_unsupported(workers: Workers, tmp_path: Path) -> None:
    schedule = ("--schedule", "uniform", "--rate", "100", "--duration", "400ms")
    tape = worker_driver.write_tape(tmp_path, *GETS[:-2], *schedule)
    answer = prepared(workers, "folsom", tape, ["127.0.0.1:1"], depth=2)
    assert isinstance(answer, Unsupported), answer


@pytest.mark.parametrize("client", ["null", "caffeine"])
def test_a_cache_inside_is_shared_by_all_callers(client: str, tmp_path: Path) -> None:
    tape = worker_driver.write_tape(tmp_path, *MIXED, "--exptime", "100")
    with worker_driver.started(CLIENTS[f"java/{client}"]) as (worker, ready):
        assert "none" in ready.capabilities
        setup = worker_driver.patient(
            servers=[], wire="none", threads=3, connections=3, tape=str(tape)
        )
        answer = worker_driver.ask(worker, setup)
        assert isinstance(answer, Ready), answer
        assert worker_driver.play(worker, RunRequest(phase="prefill")).operations["set"].ok == 20
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=1000))
        worker.bye()
    assert sum(told.ok for told in done.operations.values()) == 1000
    assert done.operations["get"].hits > 0
