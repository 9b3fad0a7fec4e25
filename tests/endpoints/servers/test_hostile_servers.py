"""Servers that answer byte by byte, or without end: time and memory have limits."""

import contextlib
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from cachemark.endpoints.probe import raw_connection
from cachemark.endpoints.probe.raw_connection import AnswerError, RawConnection
from cachemark.endpoints.servers.control_connection import Control, ReplyTimeoutError
from cachemark.model.errors import TrialError

PATIENCE_S = 60.0


@contextmanager
def sending(chunk: bytes, every_s: float = 0.0) -> Generator[str]:
    """A server that sends this again and again, on one connection, until that is closed."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                while not ended.wait(every_s):
                    connection.sendall(chunk)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        ended.set()
        thread.join()


def test_one_time_out_covers_a_reply_in_single_bytes() -> None:
    with (
        sending(b"S", every_s=0.01) as address,
        contextlib.closing(Control(address, 0.2)) as control,
        pytest.raises(ReplyTimeoutError),
    ):
        control.stats()


def test_statistics_without_end_are_broken_off() -> None:
    with (
        sending(b"STAT x 1\r\n" * 1000) as address,
        contextlib.closing(Control(address, PATIENCE_S)) as control,
        pytest.raises(TrialError, match="broke off"),
    ):
        control.stats()


def test_a_version_is_a_short_text() -> None:
    with (
        sending(b"VERSION " + b"9" * 60_000 + b"\r\n", every_s=PATIENCE_S / 1e4) as address,
        contextlib.closing(Control(address, PATIENCE_S)) as control,
    ):
        assert control.version() == "9" * 1000


def test_a_probe_does_not_keep_what_has_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_connection, "TIMEOUT_S", PATIENCE_S)
    with (
        sending(b"x" * 2**20) as address,
        RawConnection(address) as connection,
        pytest.raises(AnswerError, match="without end: xxx"),
    ):
        connection.expect(rb"STORED\r\n")
