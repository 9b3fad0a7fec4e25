"""Clients by TLS: they trust the certificates that they are given, and no others."""

import shutil
import socket
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from cachemark.endpoints.capabilities import supported_wires
from cachemark.endpoints.clients import registry
from cachemark.endpoints.servers import parse_spec, running
from cachemark.endpoints.worker import Worker
from cachemark.host import process
from cachemark.model.protocol import (
    Done,
    Failure,
    Prepare,
    Ready,
    RunRequest,
    Unsupported,
    WorkerAnswer,
)
from cachemark.runs.resilience.injection import TlsFiles, tls_files
from tests.workers import worker_driver

CLIENTS = registry(process.binary_path())
WITH_TLS = (
    "native",
    "python/pymemcache",
    "python/bmemcached",
    "python/emcache",
    "python/aiomcache",
    "ruby/dalli",
    "ruby/mem_cache_store",
    "go/gomemcache",
    "go/gomemcache-grafana",
    "java/folsom",
    "java/elasticache",
    "node/memcache-client",
)
pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    return tls_files(tmp_path, "untrusted")


def players(names: Sequence[str]) -> list[Any]:
    """Clients as parameters: one process has all tests of a client."""
    return [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in names]


ELASTICACHE = pytest.mark.parametrize("player", players(["java/elasticache"]), indirect=True)


@pytest.fixture(scope="module", params=players(WITH_TLS))
def player(request: pytest.FixtureRequest) -> Generator[tuple[Worker, Ready]]:
    """One worker for all tests of a client: whom it trusted before must not matter."""
    client = CLIENTS[request.param]
    if missing := client.missing():
        pytest.skip(f"{missing}: {client.setup}")
    with worker_driver.started(client) as (worker, ready):
        assert "tls" in ready.capabilities
        yield worker, ready


@contextmanager
def prepared(
    player: tuple[Worker, Ready],
    options: dict[str, str],
    trusted: Path,
    folder: Path,
    *,
    spec: str = "memcached",
    way: Callable[[str], Any] = nullcontext,
    **fields: Any,
) -> Generator[tuple[Worker, WorkerAnswer]]:
    """The worker, told to connect to a server with these options, and what it said."""
    worker, ready = player
    shape = ("--keys", "20", "--size", "0..2k", "--ops", "200", "--mix", "get=4,set=1")
    tape = worker_driver.write_tape(folder, *shape)
    given = ",".join(f"{name}={value}" for name, value in options.items())
    with ExitStack() as ends:
        server = ends.enter_context(running(parse_spec(f"{spec}:threads=1,memory=16,{given}")))
        setup = worker_driver.patient(
            servers=[ends.enter_context(way(address)) for address in server.addresses],
            tape=str(tape),
            options={"tls": str(trusted)},
            wire=supported_wires(ready)[0],
            **fields,
        )
        yield worker, worker_driver.ask(worker, setup)


def test_a_client_plays_by_tls(
    player: tuple[Worker, Ready], files: TlsFiles, tmp_path: Path
) -> None:
    with prepared(player, files.good, files.trusted, tmp_path) as (worker, answer):
        assert isinstance(answer, Ready)
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=200))
    assert [op.errors for op in done.operations.values() if op.errors] == []
    assert sum(op.ok for op in done.operations.values()) == 200


def _plays(worker: Worker, setup: Prepare) -> bool:
    """Whether operations succeed. By TLS 1.3 a server refuses a client after its handshake."""
    if not isinstance(worker_driver.ask(worker, setup), Ready):
        return False
    worker.send(RunRequest(phase="measure", ops=20))
    answer = worker_driver.finish(worker)
    return isinstance(answer, Done) and sum(op.ok for op in answer.operations.values()) > 0


@pytest.mark.parametrize(
    "player",
    players([name for name in WITH_TLS if name != "python/emcache"]),
    indirect=True,
)
def test_a_client_shows_its_certificate_and_expects_a_name(
    player: tuple[Worker, Ready], tmp_path: Path
) -> None:
    """The server asks for a certificate, and has one of a name that is not its address."""
    worker, ready = player
    tape = worker_driver.write_tape(tmp_path, "--keys", "20", "--ops", "20", "--mix", "set=1")
    spec = parse_spec("memcached:threads=1,memory=16,tls=mutual,tls_name=cache.example")
    with running(spec) as server:
        assert server.tls is not None
        options = server.tls.worker_options()
        wrong = {**options, "tls_name": "other.example"}
        anonymous = {name: options[name] for name in ("tls", "tls_name")}
        for given, connects in ((options, True), (wrong, False), (anonymous, False)):
            setup = worker_driver.patient(
                servers=server.addresses,
                tape=str(tape),
                options=given,
                wire=supported_wires(ready)[0],
                **({} if connects else {"timeout_ms": worker_driver.REFUSED_MS}),
            )
            assert _plays(worker, setup) is connects, given


def test_a_certificate_of_an_unknown_authority_is_refused(
    player: tuple[Worker, Ready], files: TlsFiles, tmp_path: Path
) -> None:
    patience: dict[str, Any] = {"timeout_ms": worker_driver.REFUSED_MS}
    with prepared(player, files.bad, files.trusted, tmp_path, **patience) as (_, answer):
        assert isinstance(answer, Failure)


def test_the_certificates_to_trust_are_read(
    player: tuple[Worker, Ready], files: TlsFiles, tmp_path: Path
) -> None:
    with prepared(player, files.good, tmp_path / "nowhere.pem", tmp_path) as (_, answer):
        assert isinstance(answer, Unsupported | Failure)
        said = answer.reason if isinstance(answer, Unsupported) else answer.text
        assert "nowhere.pem" in said or "tls" in said


@ELASTICACHE
def test_a_connection_that_never_answers_is_replaced(
    player: tuple[Worker, Ready], files: TlsFiles, tmp_path: Path
) -> None:
    """Elasticache's library leaves some of its connections silent: here its first one is."""
    by_way = prepared(player, files.good, files.trusted, tmp_path, way=silent_at_first)
    with by_way as (_, answer):
        assert isinstance(answer, Ready)


@ELASTICACHE
def test_several_servers_of_one_host_need_no_name(
    player: tuple[Worker, Ready], files: TlsFiles, tmp_path: Path
) -> None:
    """Elasticache's library takes one name for all servers, and asks DNS without it."""
    two = "cluster:2:memcached"
    with prepared(player, files.good, files.trusted, tmp_path, spec=two) as (worker, answer):
        assert isinstance(answer, Ready)
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=20))
    assert sum(op.ok for op in done.operations.values()) > 0


@contextmanager
def silent_at_first(address: str) -> Generator[str]:
    """An address whose first connection never answers; the others lead to `address`."""
    host, _, port = address.rpartition(":")
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as ends:

        def pump(one: socket.socket, other: socket.socket) -> None:
            with suppress(OSError):
                while data := one.recv(65536):
                    other.sendall(data)
                other.shutdown(socket.SHUT_WR)

        def serve() -> None:
            with suppress(OSError):
                ends.enter_context(listener.accept()[0])
                while True:
                    near = ends.enter_context(listener.accept()[0])
                    far = ends.enter_context(socket.create_connection((host, int(port))))
                    for pair in ((near, far), (far, near)):
                        threading.Thread(target=pump, args=pair, daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
