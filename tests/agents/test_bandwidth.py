"""What reaches a host from the server's host is counted; a port that nobody listens on is named."""

from __future__ import annotations

import socket

import pytest

from cachemark.agents import bandwidth
from cachemark.agents.bandwidth import offer_bytes, receive_bytes
from cachemark.model.errors import TrialError


def test_what_is_sent_until_the_end_is_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "_SEND_S", 0.01)
    assert receive_bytes("127.0.0.1", offer_bytes("127.0.0.1")) > 0


def test_a_server_s_host_that_cannot_be_reached_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = int(closed.getsockname()[1])
    with pytest.raises(TrialError, match=f"the server's host, 127.0.0.1:{port}") as caught:
        receive_bytes("127.0.0.1", port)
    assert "all ports" in caught.value.remedy
