"""Every worker counts the same: the cases of conformance/worker, on a real memcached.

What the worker told, what the case expects and what the server itself counted have to agree.
"""

from __future__ import annotations

import shutil
import socket
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from cachemark import histogram, process
from cachemark.clients import Client, registry
from cachemark.protocol import Done, Operation, Prepare, Ready, Run, Unsupported
from cachemark.servers import RunningServer, parse_spec, running
from cachemark.worker import Worker
from tests.conftest import ROOT
from tests.workers import driver

pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)

CASES = [
    pytest.param(case, id=case["name"])
    for path in sorted((ROOT / "conformance" / "worker").glob("*.toml"))
    for case in tomllib.loads(path.read_text())["case"]
]
FIGURES = ("ok", "hits", "misses", "not_stored", "wrong_values", "keys")


@pytest.fixture
def memcached() -> Generator[RunningServer]:
    with running(parse_spec("memcached:threads=1,memory=64")) as server:
        yield server


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("client", driver.clients())
def test_case(
    client: Client, case: dict[str, Any], memcached: RunningServer, tmp_path: Path
) -> None:
    tape = driver.write_tape(tmp_path, *case["tape"])
    with driver.started(client) as (worker, ready):
        prepared = _prepare(worker, ready, case, memcached, tape)
        if prepared is None:
            return
        prefill = driver.play(worker, Run(phase="prefill"))
        _check_prefill(prefill, case)
        before = memcached.stats()
        done = driver.play(worker, Run(phase="measure", ops=case["ops"]))
        after = memcached.stats()
        worker.bye()
    for name, count in case["stats"].items():
        assert driver.rise(before, after, name) == count, name
    assert sum(op.ok for op in done.operations.values()) == case["ops"], done.operations
    for kind, expected in case.get("expect", {}).items():
        _check(done.operations[kind], expected)
        assert list(done.operations) == [kind]
    assert done.barriers >= case.get("barriers", 0)
    assert done.elapsed_ns >= done.send_elapsed_ns > 0
    assert done.max_in_flight >= 1
    if client.id != "reference":  # which leaves out what a test double need not tell
        assert done.cpu_user_ns + done.cpu_system_ns > 0


def _prepare(
    worker: Worker, ready: Ready, case: dict[str, Any], server: RunningServer, tape: Path
) -> Ready | None:
    """Prepare, or see that what is not among the worker's capabilities is refused."""
    callers = case.get("callers", 1)
    threads = callers if "threads" in ready.capabilities else 1
    answer = driver.ask(
        worker,
        Prepare(
            servers=server.addresses,
            threads=threads,
            connections=callers,
            tape=str(tape),
            segment=tuple(case.get("segment", (0, 1))),
        ),
    )
    if isinstance(answer, Ready):
        assert driver.tape_kinds(case["tape"]) <= set(ready.capabilities)
        return answer
    assert isinstance(answer, Unsupported), answer
    assert answer.reason
    lacks = driver.tape_kinds(case["tape"]) - set(ready.capabilities)
    assert lacks or (callers > 1 and ready.client == "reference"), answer
    assert server.stats()["cmd_get"] == server.stats()["cmd_set"] == "0"
    return None


def _check_prefill(done: Done, case: dict[str, Any]) -> None:
    arguments = case["tape"]
    keys = int(arguments[arguments.index("--keys") + 1])
    part = float(arguments[arguments.index("--prefill") + 1]) if "--prefill" in arguments else 1
    stored = done.operations.get("set", Operation(attempts=0, ok=0))
    assert set(done.operations) <= {"set"}
    assert stored.ok == stored.attempts == case.get("prefilled", round(keys * part))


def _check(told: Operation, expected: dict[str, int]) -> None:
    for figure in FIGURES:
        assert getattr(told, figure) == expected.get(figure, 0), figure
    for figure in ("value_bytes", "key_bytes"):
        assert getattr(told, figure) == expected.get(figure, getattr(told, figure)), figure
    assert told.attempts == told.ok
    assert not told.errors
    for blob in (told.response, told.service):
        assert blob is not None
        decoded = histogram.decode(blob)
        assert decoded.count == told.ok
        # busy_ns is the sum of the same times; buckets keep three digits of each.
        assert decoded.mean() * decoded.count == pytest.approx(told.busy_ns, rel=0.002)


@pytest.mark.parametrize("client", driver.clients())
def test_a_capability_is_true(client: Client, tmp_path: Path) -> None:
    """A Unix socket and each wire: what is claimed works, what is not is refused."""
    arguments = ("--keys", "20", "--size", "30", "--mix", "get=1,set=1", "--ops", "100")
    tape = driver.write_tape(tmp_path, *arguments)
    with (
        running(parse_spec("memcached:threads=1,memory=16,unix=yes")) as by_path,
        running(parse_spec("memcached:threads=1,memory=16")) as by_port,
        driver.started(client) as (worker, ready),
    ):
        ways = [("text", by_path, "unix"), ("binary", by_port, "binary"), ("text", by_port, "text")]
        for wire, server, capability in ways:
            request = Prepare(servers=server.addresses, wire=wire, tape=str(tape))
            answer = driver.ask(worker, request)
            if capability not in ready.capabilities:
                assert not isinstance(answer, Ready), capability
                continue
            assert isinstance(answer, Ready), answer
            before = server.stats()
            assert driver.play(worker, Run(phase="prefill")).operations["set"].ok == 20
            done = driver.play(worker, Run(phase="measure", ops=100))
            assert sum(op.ok for op in done.operations.values()) == 100
            after = server.stats()
            assert driver.rise(before, after, "cmd_get") == done.operations["get"].hits


@pytest.mark.parametrize(("wire", "first"), [("text", b"s"), ("binary", b"\x80")])
def test_a_wire_is_what_goes_over_it(wire: str, first: bytes, tmp_path: Path) -> None:
    """The factor levels are really different: seen from the other end."""
    client = registry(process.binary_path())["python/pylibmc"]
    if client.missing():
        pytest.skip(client.setup)
    tape = driver.write_tape(tmp_path, "--keys", "20", "--mix", "get=1", "--ops", "100")
    with socket.create_server(("127.0.0.1", 0)) as server, driver.started(client) as (worker, _):
        address = f"127.0.0.1:{server.getsockname()[1]}"
        worker.send(Prepare(servers=[address], wire=wire, tape=str(tape), timeout_ms=5000))
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1) == first


@pytest.mark.parametrize("options", [{}, {"autobatching": "on"}])
def test_many_tasks_on_few_connections(options: dict[str, str], tmp_path: Path) -> None:
    """Awaited calls: depth times connections tasks, each read counted once."""
    client = registry(process.binary_path())["python/emcache"]
    if client.missing():
        pytest.skip(client.setup)
    tape = driver.write_tape(tmp_path, "--keys", "20", "--mix", "get=1", "--ops", "100")
    with (
        running(parse_spec("memcached:threads=1,memory=16")) as server,
        driver.started(client) as (worker, _),
    ):
        before = int(server.stats()["total_connections"])
        setup = Prepare(
            servers=server.addresses, connections=2, depth=5, tape=str(tape), options=options
        )
        answer = driver.ask(worker, setup)
        assert isinstance(answer, Ready), answer
        assert driver.play(worker, Run(phase="prefill")).operations["set"].ok == 20
        gets = server.stats()["cmd_get"]
        done = driver.play(worker, Run(phase="measure", ops=1000))
        after = server.stats()
    assert done.max_in_flight == 10
    assert done.operations["get"].hits == done.operations["get"].ok == 1000
    # Gets of the same key in one batch go out as one.
    sent = int(after["cmd_get"]) - int(gets)
    assert sent <= 1000 if options else sent == 1000
    assert int(after["total_connections"]) - before == 2
