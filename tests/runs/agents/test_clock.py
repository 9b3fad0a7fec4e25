"""The network between hosts: offsets lie within their error, strangers are ignored, bandwidth."""

import contextlib
import hashlib
import hmac
import socket
from typing import Any

import pytest

from cachemark.model.errors import TrialError
from cachemark.runs.agents import bandwidth, clock
from cachemark.runs.agents.bandwidth import offer_bytes, receive_bytes
from cachemark.runs.agents.clock import ClockResponder, read_clock

KEY = b"k" * 32


def code(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).digest()


@pytest.mark.parametrize("ahead_ns", [0, 37_000_000, -1_250_000_000])
def test_the_offset_of_a_clock_that_is_ahead(
    monkeypatch: pytest.MonkeyPatch, ahead_ns: int
) -> None:
    """Both clocks are one; the coordinator's answers are moved."""
    real = clock.time.time_ns
    reading_here = clock.threading.current_thread

    def moved() -> int:
        return real() - (ahead_ns if reading_here().name == "clock" else 0)

    monkeypatch.setattr(clock.time, "time_ns", moved)
    with ClockResponder("127.0.0.1", 0, KEY) as responder:
        found = read_clock("127.0.0.1", responder.port, KEY)
    assert abs(found.offset_ns - ahead_ns) <= found.error_ns + 1_000
    assert found.answers > 8


class Responder(ClockResponder):
    """Answers whoever asks, with a key that the host does not have."""

    def _answer(self) -> None:
        while not self._ended.is_set():
            with contextlib.suppress(OSError):
                _, sender = self._socket.recvfrom(64)
                self._socket.sendto(bytes(8) + code(b"another key", bytes(8)), sender)


def test_an_answer_without_the_key_is_ignored() -> None:
    with (
        Responder("127.0.0.1", 0, KEY) as responder,
        pytest.raises(TrialError, match="0 of 8 datagrams"),
    ):
        read_clock("127.0.0.1", responder.port, KEY)


def test_strangers_and_reflected_answers_get_no_answer() -> None:
    nonce = bytes(range(16))
    asked = nonce + code(KEY, nonce)
    with (
        ClockResponder("127.0.0.1", 0, KEY) as responder,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
    ):
        stranger.connect(("127.0.0.1", responder.port))
        for wrong in (b"", nonce, nonce + code(b"another key", nonce), asked[:-1]):
            stranger.send(wrong)
        stranger.send(asked)
        answer = stranger.recv(64)
        stranger.send(answer)
        stranger.send(asked)
        # Datagrams on loopback keep their order: there was none for those before.
        first, second = answer, stranger.recv(64)
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.recv(64)
    for each in (first, second):
        assert each[8:] == code(KEY, nonce + each[:8])


def test_a_port_that_nobody_listens_on_is_named() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.connect(silent.getsockname())
        port = int(silent.getsockname()[1])
        with pytest.raises(TrialError, match=f"UDP port {port}, were answered"):
            read_clock("127.0.0.1", port, KEY)


def test_a_late_answer_does_not_disturb_the_exchanges_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first answer is sent before the second one."""
    late: list[bytes] = []

    class Slow(socket.socket):
        def sendto(self, data: bytes, address: Any) -> int:  # type: ignore[override]
            if not late:
                late.append(data)
                return len(data)
            if len(late) == 1:
                late.append(data)
                super().sendto(late[0], address)
            return super().sendto(data, address)

    monkeypatch.setattr(clock.socket, "socket", Slow)
    with ClockResponder("127.0.0.1", 0, KEY) as responder:
        assert read_clock("127.0.0.1", responder.port, KEY).answers > 8


def test_what_is_sent_until_the_end_is_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "_SEND_S", 0.01)
    assert receive_bytes("127.0.0.1", offer_bytes("127.0.0.1")) > 0


def test_a_server_s_host_that_cannot_be_reached_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = int(closed.getsockname()[1])
    with pytest.raises(TrialError, match=f"the server's host, 127.0.0.1:{port}") as caught:
        receive_bytes("127.0.0.1", port)
    assert "all ports" in caught.value.remedy
