"""Clients that close their connections after a number of operations: the server counts them too."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from cachemark.endpoints.clients import Client
from cachemark.endpoints.servers import parse_spec, running
from cachemark.model.protocol import Ready, RunRequest, Unsupported
from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside
from tests.workers import worker_driver

pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)
CLIENTS = {
    "python/pymemcache": "text",
    "python/pylibmc": "binary",
    "python/python-memcached": "text",
    "python/bmemcached": "binary",
    "python/meta-memcache": "meta",
    "python/socket": "text",
    "php/memcached": "binary",
    "php/memcache": "text",
    "go/gomemcache": "text",
    "go/gomemcache-grafana": "text",
    "ruby/dalli": "binary",
    "ruby/mem_cache_store": "binary",
    "node/memcached": "text",
    "node/memcache-client": "text",
    "node/memjs": "binary",
    "perl/memcached": "text",
    "perl/fast": "text",
    "java/spymemcached": "binary",
    "java/xmemcached": "text",
    "java/folsom": "text",
    "java/elasticache": "text",
    "c/libmemcached": "binary",
    "rust/memcache": "binary",
    "rust/async-memcached": "meta",
}
CACHES = ("go/otter", "java/caffeine", "node/lru-cache", "perl/null", "c/null", "rust/moka")
AFTER, OPS, THREADS = 10, 120, 2


def with_servers() -> list[Any]:
    """Each client with one server, and with three if it plays several."""
    return [
        pytest.param(*client.values, servers, id=f"{client.id}-{servers}", marks=client.marks)
        for client in worker_driver.clients(CLIENTS)
        for servers in (1, 3)
        if servers == 1
        or ((ready := worker_driver.claims(str(client.id))) and "cluster" in ready.capabilities)
    ]


@pytest.mark.parametrize(("client", "servers"), with_servers())
def test_the_server_counts_as_many_connections(
    client: Client, servers: int, tmp_path: Path
) -> None:
    tape = worker_driver.write_tape(
        tmp_path, "--keys", "20", "--ops", "120", "--mix", "get=1,set=1"
    )
    spec = parse_spec(f"cluster:{servers}:memcached:memory=16,threads=1")
    threads = 1 if client.concurrency == "processes" else THREADS
    with running(spec) as target, worker_driver.started(client) as (worker, _):
        setup = worker_driver.patient(
            servers=target.addresses,
            tape=str(tape),
            wire=CLIENTS[client.id],
            threads=threads,
            connections=threads,
            options={"reconnect_after": str(AFTER)},
        )
        assert isinstance(answer := worker_driver.ask(worker, setup), Ready), answer
        worker_driver.play(worker, RunRequest(phase="prefill"))
        before = target.stats()
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=OPS))
        after = target.stats()
    assert sum(op.ok for op in done.operations.values()) == OPS
    # A lane of two makes 60 calls: it begins anew before those numbered 11, 21, 31, 41 and 51.
    assert done.renewed == threads * (OPS // threads // AFTER - 1) * servers
    assert done.reconnects == 0
    assert worker_driver.rise(before, after, "total_connections") == done.renewed


@pytest.mark.parametrize("client", worker_driver.clients(CLIENTS))
def test_what_is_no_number_of_operations_is_refused(client: Client, tmp_path: Path) -> None:
    tape = worker_driver.write_tape(tmp_path, "--keys", "20", "--ops", "40", "--mix", "get=1")
    with worker_driver.started(client) as (worker, _):
        for value in ("0", "-1", "+5", "ten", "1.5", ""):
            answer = worker_driver.ask(
                worker,
                worker_driver.patient(
                    servers=["127.0.0.1:1"],
                    tape=str(tape),
                    wire=CLIENTS[client.id],
                    options={"reconnect_after": value},
                ),
            )
            assert isinstance(answer, Unsupported), (value, answer)
            assert "a number from 1 on" in answer.reason


@pytest.mark.parametrize("client", worker_driver.clients(CACHES))
def test_a_cache_in_the_process_has_no_connections(client: Client, tmp_path: Path) -> None:
    tape = worker_driver.write_tape(tmp_path, "--keys", "20", "--ops", "40", "--mix", "get=1")
    with worker_driver.started(client) as (worker, _):
        setup = worker_driver.patient(
            servers=[], tape=str(tape), wire="none", options={"reconnect_after": "10"}
        )
        answer = worker_driver.ask(worker, setup)
    assert isinstance(answer, Unsupported), answer
    assert "no option reconnect_after" in answer.reason


@pytest.mark.parametrize("design", ["trials", "rounds"])
def test_a_run_tells_the_new_connections(design: str, inside: Inside, tmp_path: Path) -> None:
    # New connections ask for the server's version: more bytes than replies to two stores would be.
    renews = "python/pymemcache?reconnect_after=2"
    ended = inside(
        *(
            "run",
            "--client",
            renews,
            "--client",
            "native",
            "--server",
            "memcached",
            "--blocks",
            "1",
        ),
        *("--mix", "get=9,set=1,set_noreply=1", "--set", "noise=note", "--set", f"design={design}"),
        *("--measure-ms", "300", "--set", "timing.warmup_ms=100", "--set", "rounds.until=fixed"),
    )
    outcome = next(one for one in read_outcomes(tmp_path) if one.trial.cell.client == renews)
    assert outcome.verdict == "VALID", (outcome.reasons, ended.stderr)
    assert (outcome.rounds is not None) == (design == "rounds")
    assert outcome.measure is not None
    ops = sum(op.ok for op in outcome.measure.operations.values())
    assert outcome.measure.renewed >= ops // 2 - 1 > 0
    assert "new connections" in inside("report", "--format", "table").stdout


@pytest.mark.skipif(shutil.which("nutcracker") is None, reason="apt-get install nutcracker")
def test_clients_of_libmemcached_are_measured_through_a_proxy(
    inside: Inside, tmp_path: Path
) -> None:
    """twemproxy closes a connection that asks for `stats`, and has connections of its own."""
    names = [
        name
        for name in ("python/pylibmc", "php/memcached", "c/libmemcached?reconnect_after=20")
        if worker_driver.claims(name.partition("?")[0])
    ]
    clients = [word for name in names for word in ("--client", name)]
    ended = inside(
        *("run", *clients, "--server", "nutcracker:memcached", "--blocks", "1"),
        *("--mix", "get=9,set=1", "--set", "noise=note", "--set", "design=trials"),
        *("--measure-ms", "300", "--set", "timing.warmup_ms=50"),
    )
    outcomes = read_outcomes(tmp_path)
    assert {one.trial.cell.client for one in outcomes} == set(names)
    for one in outcomes:
        assert one.verdict == "VALID", (one.reasons, ended.stderr)
