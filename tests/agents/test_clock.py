"""Clocks are compared: the offset lies within its error, and strangers' answers are ignored."""

from __future__ import annotations

import socket

import pytest

from cachemark.agents import clock
from cachemark.agents.clock import ClockResponder, read_clock
from cachemark.model.errors import TrialError

KEY = b"k" * 32


def free_port() -> int:
    """A port of UDP that was free a moment ago."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
    port = free_port()
    with ClockResponder("127.0.0.1", port, KEY):
        found = read_clock("127.0.0.1", port, KEY)
    assert abs(found.offset_ns - ahead_ns) <= found.error_ns + 1_000
    assert found.answers > 8


def test_an_answer_without_the_key_is_ignored() -> None:
    port = free_port()
    with (
        ClockResponder("127.0.0.1", port, b"another key"),
        pytest.raises(TrialError, match="0 of 64 datagrams"),
    ):
        read_clock("127.0.0.1", port, KEY)


def test_without_a_coordinator_there_is_no_answer() -> None:
    with pytest.raises(TrialError, match=r"UDP port [0-9]+, were answered"):
        read_clock("127.0.0.1", free_port(), KEY)
