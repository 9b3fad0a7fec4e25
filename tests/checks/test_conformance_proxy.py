"""The proxy of the conformance cases: it ends whatever a client does meanwhile."""

from __future__ import annotations

import socket
import threading

import pytest

from cachemark.checks.conformance import proxy as module
from cachemark.checks.conformance.proxy import ReplyProxy
from cachemark.model.address import parse_host_port


def test_a_client_that_connects_while_the_proxy_closes_does_not_hold_it_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Libraries connect again in the background, at any moment."""
    accepted, closed, go_on = threading.Event(), threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as upstream:
        dial, shut = socket.create_connection, module._shut

        def dial_late(address: tuple[str, int]) -> socket.socket:
            accepted.set()
            go_on.wait()
            return dial(address)

        def shut_and_note(end: socket.socket) -> None:
            shut(end)
            closed.set()

        monkeypatch.setattr(module, "_shut", shut_and_note)
        proxy = ReplyProxy(f"127.0.0.1:{upstream.getsockname()[1]}")
        monkeypatch.setattr(socket, "create_connection", dial_late)
        with dial(parse_host_port(proxy.address)) as client:
            client.settimeout(60)
            accepted.wait()
            closing = threading.Thread(target=proxy.close, daemon=True)
            closing.start()
            closed.wait()
            go_on.set()
            closing.join(60)
            assert not closing.is_alive()
            assert client.recv(1) == b""
