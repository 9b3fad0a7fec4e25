"""`refill`: whether a client sends the next command when one has been answered, or when all have.

A server here answers one command at a time, and counts what has arrived meanwhile.
"""

import select
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from cachemark.endpoints.capabilities import Demand, unclaimed
from cachemark.endpoints.clients import registry
from cachemark.host import process
from cachemark.model.protocol import Prepare, Ready, RunRequest
from tests.workers import worker_driver

CLIENTS = registry(process.binary_path())
PIPELINING = ("native", "java/folsom", "java/spymemcached")
DEPTH = 8
OPS = 80
# Long enough for any machine: it only ends a test that fails.
PATIENCE_S = 60.0


class OneByOne:
    """A server for deletes. `ahead` has what had arrived beyond each answered batch of eight.

    With `insists`, it answers the first of the deletes, and then no other until the ninth comes.
    """

    def __init__(self, *, insists: bool) -> None:
        self.insists = insists
        self.answered = 0
        self.ahead = 0
        self.refilled = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE_S)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def serve(self) -> None:
        """Serve one connection to its end."""
        connection, _ = self._listener.accept()
        with connection, self._listener:
            connection.settimeout(PATIENCE_S)
            buffer = b""
            while chunk := connection.recv(1 << 16):
                buffer = self._answer(connection, buffer + chunk)

    def _answer(self, connection: socket.socket, buffer: bytes) -> bytes:
        while b"\r\n" in buffer:
            line, _, buffer = buffer.partition(b"\r\n")
            if not line.startswith(b"delete"):
                connection.sendall(b"VERSION 1\r\n" if line.startswith(b"version") else b"END\r\n")
                continue
            connection.sendall(b"NOT_FOUND\r\n")
            self.answered += 1
            if self.insists and self.answered == 1:
                while self.answered + buffer.count(b"\r\n") <= DEPTH:
                    buffer += connection.recv(1 << 16)
                self.refilled = True
            while select.select([connection], [], [], 0)[0]:
                chunk = connection.recv(1 << 16)
                if not chunk:
                    break
                buffer += chunk
            batch_end = (self.answered - 1) // DEPTH * DEPTH + DEPTH
            if self.answered < batch_end:
                arrived = self.answered + buffer.count(b"\r\n")
                self.ahead = max(self.ahead, arrived - batch_end)
        return buffer


@contextmanager
def one_by_one(*, insists: bool) -> Generator[OneByOne]:
    """A server for one connection."""
    server = OneByOne(insists=insists)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        thread.join()


def play(client: str, server: OneByOne, folder: Path, refill: Any) -> int:
    """Play deletes at a depth of 8 on one connection: how many were right."""
    tape = worker_driver.write_tape(
        folder, "--keys", "100", "--size", "1", "--prefill", "0", "--ops", str(OPS),
        "--mix", "delete=1",
    )  # fmt: skip
    with worker_driver.started(CLIENTS[client]) as (worker, ready):
        assert "refill_all" in ready.capabilities
        setup = worker_driver.patient(
            servers=[server.address], tape=str(tape), depth=DEPTH, refill=refill
        )
        assert isinstance(worker_driver.ask(worker, setup), Ready)
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=OPS))
    return done.operations["delete"].ok


@pytest.mark.parametrize("client", PIPELINING)
def test_all_are_answered_before_the_next_are_sent(client: str, tmp_path: Path) -> None:
    if missing := CLIENTS[client].missing():
        pytest.skip(f"{missing}: {CLIENTS[client].setup}")
    with one_by_one(insists=False) as server:
        assert play(client, server, tmp_path, "all") == OPS
    assert server.answered == OPS
    assert server.ahead <= 0


@pytest.mark.parametrize("client", ["native", "java/folsom"])
def test_each_answer_makes_room_for_the_next_command(client: str, tmp_path: Path) -> None:
    """The server waits for the ninth command before it answers the second."""
    if missing := CLIENTS[client].missing():
        pytest.skip(f"{missing}: {CLIENTS[client].setup}")
    with one_by_one(insists=True) as server:
        assert play(client, server, tmp_path, "each") == OPS
    assert server.refilled


@pytest.mark.parametrize(
    ("depth", "refill", "lacks"), [(8, "all", True), (8, "each", False), (1, "all", False)]
)
def test_a_worker_that_does_not_claim_it_is_not_asked(
    depth: int, refill: Literal["each", "all"], lacks: bool
) -> None:
    ready = Ready(client="some/client", capabilities=["pipeline"])
    request = Prepare(servers=["h:1"], tape="t", depth=depth, refill=refill)
    assert ("refill_all" in unclaimed(Demand(prepare=request), ready)) is lacks
