"""Clients log in, in the protocols that they claim: on the real memcached, with right and wrong."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cachemark.endpoints.servers import parse_spec, running
from cachemark.endpoints.worker import Worker
from cachemark.model.protocol import Failure, Ready, RunRequest, Unsupported, WorkerAnswer
from tests.workers import worker_driver

WITH_SASL = (
    "native",
    "python/bmemcached",
    "c/libmemcached",
    "php/memcached",
    "ruby/dalli",
    "ruby/mem_cache_store",
    "node/memjs",
    "java/spymemcached",
    "java/folsom",
    "java/elasticache",
    "rust/memcache",
)
WITH_TEXT = ("native", "python/emcache", "java/folsom", "rust/memcache")
SERVERS = {"login_sasl": "sasl=yes", "login_text": "threads=1"}
SECRET, GUESS = "correct-horse", "wrong-battery"
# By wire; the library's own name of the one that logs in.
CASES = [
    *((name, "login_sasl", "binary") for name in WITH_SASL),
    *((name, "login_text", "text") for name in WITH_TEXT),
]
pytestmark = [
    pytest.mark.skipif(shutil.which("memcached") is None, reason="apt-get install memcached"),
    pytest.mark.skipif(shutil.which("saslpasswd2") is None, reason="apt-get install sasl2-bin"),
]


@contextmanager
def told(
    name: str, wire: str, server: str, password: str, folder: Path, **fields: int
) -> Generator[tuple[Worker, WorkerAnswer]]:
    """A worker that was given a password for a server that knows another or the same one."""
    ready = worker_driver.claims(name)
    if ready is None:
        pytest.skip(worker_driver.absent()[name])
    right, given = folder / "right", folder / "given"
    right.write_text(f"{SECRET}\n")
    given.write_text(f"{password}\n")
    tape = worker_driver.write_tape(folder, "--keys", "20", "--ops", "40", "--mix", "get=1,set=1")
    spec = parse_spec(f"memcached:memory=16,auth=ann:{right},{server}")
    with running(spec) as target, worker_driver.started(worker_driver.known()[name]) as (worker, _):
        options = target.worker_options(wire) | {"auth": f"ann:{given}"}
        setup = worker_driver.patient(
            servers=target.addresses, tape=str(tape), options=options, wire=wire, **fields
        )
        yield worker, worker_driver.ask(worker, setup)


@pytest.mark.parametrize(("name", "login", "wire"), CASES)
def test_a_client_that_logs_in_plays(name: str, login: str, wire: str, tmp_path: Path) -> None:
    with told(name, wire, SERVERS[login], SECRET, tmp_path) as (worker, answer):
        assert isinstance(answer, Ready), answer
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=40))
    assert [op.errors for op in done.operations.values() if op.errors] == []
    assert sum(op.ok for op in done.operations.values()) == 40


@pytest.mark.parametrize(("name", "login", "wire"), CASES)
def test_a_wrong_password_is_refused_and_never_told(
    name: str, login: str, wire: str, tmp_path: Path
) -> None:
    patience = {"timeout_ms": worker_driver.REFUSED_MS}
    with told(name, wire, SERVERS[login], GUESS, tmp_path, **patience) as (worker, answer):
        assert isinstance(answer, Unsupported | Failure), answer
        assert "auth=" not in str(answer)
        said = answer.reason if isinstance(answer, Unsupported) else answer.text
        log = worker.log_tail()
    assert GUESS not in said + log


def test_these_are_the_clients_that_have_logins() -> None:
    claimed = {
        (name, login)
        for name in worker_driver.known()
        if not name.startswith("pypy/") and (ready := worker_driver.claims(name))
        for login in SERVERS
        if login in ready.capabilities
    }
    here = {name for name in worker_driver.known() if worker_driver.claims(name)}
    assert claimed == {(name, login) for name, login, _ in CASES if name in here}
