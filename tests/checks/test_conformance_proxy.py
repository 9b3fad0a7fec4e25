"""The proxy of the conformance cases: it ends whatever a client does meanwhile, and may be slow."""

import shutil
import socket
import threading
from pathlib import Path

import pytest

from cachemark.checks.conformance import WorkerDriver, checks, find
from cachemark.checks.conformance.failures import TIMEOUT_MS
from cachemark.checks.conformance.proxy import ReplyProxy
from cachemark.endpoints.clients import parse_client, registry
from cachemark.endpoints.probe import observation
from cachemark.host import process
from cachemark.model.address import parse_host_port


def test_a_client_that_connects_does_not_delay_the_proxys_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Libraries connect again in the background, at any moment."""
    accepted, closed, go_on = threading.Event(), threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as upstream:
        dial, shut = socket.create_connection, observation._shut_down

        def dial_late(address: tuple[str, int], timeout_s: float) -> socket.socket:
            accepted.set()
            go_on.wait()
            return dial(address, timeout_s)

        def shut_and_note(end: socket.socket) -> None:
            shut(end)
            closed.set()

        monkeypatch.setattr(observation, "_shut_down", shut_and_note)
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


@pytest.mark.skipif(shutil.which("memcached") is None, reason="apt-get install memcached")
def test_a_reply_that_takes_a_second_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a busy machine. Only the cases of time-outs wait so briefly."""
    name = "a wrong byte is a wrong value"
    corrupt, waits = ReplyProxy._corrupted, threading.Event()

    def corrupt_late(proxy: ReplyProxy, data: bytes) -> bytes:
        waits.wait(1.2 * TIMEOUT_MS / 1000)
        waits.set()  # only the first one
        return corrupt(proxy, data)

    monkeypatch.setattr(ReplyProxy, "_corrupted", corrupt_late)
    with WorkerDriver(parse_client("native", registry(process.binary_path())), tmp_path) as driver:
        findings = list(find(driver, name, checks()[name]))
    assert {finding.state for finding in findings} == {"passed"}, findings
