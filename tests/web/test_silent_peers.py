"""Peers that connect and say nothing, stop in the middle, or leave."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cachemark.web import guard, server
from tests.web.serving import RUN, Visitor, made_store, served

_LONG_S = 60
_MANY = 140


@pytest.fixture
def store(tmp_path: Path) -> Path:
    made_store(tmp_path)
    return tmp_path


@pytest.fixture
def visitor(store: Path) -> Iterator[Visitor]:
    with served(store, token="secret") as found:
        yield found


def connected(visitor: Visitor, sent: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
    """A connection that has sent the beginning of a request, or nothing."""
    where = urlsplit(visitor.address)
    peer = socket.create_connection(
        (where.hostname, where.port), timeout=_LONG_S, source_address=(source, 0)
    )
    peer.sendall(sent)
    return peer


def upload(visitor: Visitor) -> bytes:
    """The head of an archive's import, and one byte of the archive."""
    return (
        f"POST /import HTTP/1.1\r\nhost: {urlsplit(visitor.address).netloc}\r\n"
        f"origin: {visitor.address}\r\nx-cachemark-csrf: {visitor.settings.csrf}\r\n"
        f"cookie: {guard.COOKIE}={visitor.settings.session}\r\n"
        "content-length: 100000\r\nexpect: 100-continue\r\n\r\nP"
    ).encode()


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nhost: "], ids=["nothing", "half a head"])
@pytest.mark.parametrize("sources", [1, 8])
def test_many_silent_connections_keep_nobody_out(
    visitor: Visitor, sent: bytes, sources: int
) -> None:
    with ExitStack() as stack:
        for i in range(_MANY):
            stack.enter_context(connected(visitor, sent, f"127.0.0.{1 + i % sources}"))
        assert visitor.get("/login").status == 200


def test_a_head_has_a_time_limit(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEAD_S", 0.1)
    with connected(visitor, b"GET / HTTP/1.1\r\n") as peer:
        assert peer.recv(1) == b""


def test_a_login_has_a_time_limit(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_OPEN_BODY_S", 0.1)
    head = (
        f"POST /login HTTP/1.1\r\nhost: {urlsplit(visitor.address).netloc}\r\n"
        f"origin: {visitor.address}\r\ncontent-type: application/x-www-form-urlencoded\r\n"
        "content-length: 100\r\n\r\nt"
    )
    with connected(visitor, head.encode()) as peer:
        assert peer.recv(12) == b"HTTP/1.1 408"


def test_an_upload_that_stops_does_not_hold_the_machine(store: Path) -> None:
    with served(store) as visitor, connected(visitor, upload(visitor)) as peer:
        assert peer.recv(12) == b"HTTP/1.1 100"  # the server reads the body
        said = visitor.post("/import", b"no archive")
        assert said.status == 422, said.text


def test_an_upload_with_the_token_has_a_time_limit(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guard, "_BODY_S", 0.1)
    with connected(visitor, upload(visitor)) as peer:
        said = b""
        while (b"408" not in said) and (more := peer.recv(100)):
            said += more
    assert b"HTTP/1.1 408" in said
    assert "Traceback" not in capfd.readouterr().err


def test_a_peer_that_leaves_is_no_fault(store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with served(store) as visitor:
        with connected(visitor, upload(visitor)) as peer:
            assert peer.recv(12) == b"HTTP/1.1 100"
        assert visitor.get(f"/runs/{RUN}").status == 200
    assert "Traceback" not in capfd.readouterr().err
