"""Clients that close their connections after a number of operations: the server counts them too."""

import shutil
from pathlib import Path

import pytest

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
}
AFTER, OPS, THREADS = 10, 120, 2


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("name", CLIENTS)
def test_the_server_counts_as_many_connections(name: str, servers: int, tmp_path: Path) -> None:
    ready = worker_driver.claims(name)
    if ready is None:
        pytest.skip(worker_driver.absent()[name])
    if servers > 1 and "cluster" not in ready.capabilities:
        pytest.skip("plays one server")
    tape = worker_driver.write_tape(
        tmp_path, "--keys", "20", "--ops", "120", "--mix", "get=1,set=1"
    )
    spec = parse_spec(f"cluster:{servers}:memcached:memory=16,threads=1")
    with running(spec) as target, worker_driver.started(worker_driver.known()[name]) as (worker, _):
        setup = worker_driver.patient(
            servers=target.addresses,
            tape=str(tape),
            wire=CLIENTS[name],
            threads=THREADS,
            connections=THREADS,
            options={"reconnect_after": str(AFTER)},
        )
        assert isinstance(answer := worker_driver.ask(worker, setup), Ready), answer
        worker_driver.play(worker, RunRequest(phase="prefill"))
        before = target.stats()
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=OPS))
        after = target.stats()
    assert sum(op.ok for op in done.operations.values()) == OPS
    # A lane makes 60 calls: it begins anew before those with the numbers 11, 21, 31, 41 and 51.
    assert done.renewed == THREADS * (OPS // THREADS // AFTER - 1) * servers
    assert worker_driver.rise(before, after, "total_connections") == done.renewed


@pytest.mark.parametrize("value", ["0", "-1", "ten", "1.5"])
def test_what_is_no_number_of_operations_is_refused(value: str, tmp_path: Path) -> None:
    tape = worker_driver.write_tape(tmp_path, "--keys", "20", "--ops", "40", "--mix", "get=1")
    with worker_driver.started(worker_driver.known()["python/pymemcache"]) as (worker, _):
        answer = worker_driver.ask(
            worker,
            worker_driver.patient(
                servers=["127.0.0.1:1"], tape=str(tape), options={"reconnect_after": value}
            ),
        )
    assert isinstance(answer, Unsupported), answer
    assert "option reconnect_after is a number from 1 on" in answer.reason


@pytest.mark.parametrize("design", ["trials", "rounds"])
def test_a_run_tells_the_new_connections(design: str, inside: Inside, tmp_path: Path) -> None:
    renews = "python/pymemcache?reconnect_after=20"
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
    assert outcome.measure.renewed >= ops // 20 - 1 > 0
    assert "new connections" in inside("report", "--format", "table").stdout
