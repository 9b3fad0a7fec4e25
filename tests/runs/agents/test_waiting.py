"""An agent waits for a coordinator, whatever another one was doing when it ended."""

import socket
import ssl
import threading
from pathlib import Path

import pytest

from cachemark.runs.agents import agent
from cachemark.runs.agents.certificates import COORDINATOR, certificate_files, write_certificates
from cachemark.runs.agents.hosts_file import load_hosts
from tests.runs.agents.hosts_files import write_hosts


def test_a_coordinator_that_ends_during_greeting_is_not_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "_RETRY_S", 0)
    write_certificates(tmp_path / "certs", [COORDINATOR, "c"])
    files = certificate_files(tmp_path / "certs", COORDINATOR)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    greeted: list[bool] = []

    def end_then_greet() -> None:
        first, _ = listening.accept()
        first.recv(1)  # the greeting has begun
        first.shutdown(socket.SHUT_RDWR)
        second, _ = listening.accept()
        with context.wrap_socket(second, server_side=True) as connection:
            greeted.append(connection.send(b"x") == 1)
            connection.recv(1)
        first.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = int(listening.getsockname()[1])
        rows = (("c", "server+client", "127.0.0.1"),)
        hosts = load_hosts(write_hosts(tmp_path, rows, port=port, start="there", tls=True))
        coordinators = threading.Thread(target=end_then_greet)
        coordinators.start()
        agent._wait_for_coordinator(hosts, "c")  # pyright: ignore[reportPrivateUsage]
        coordinators.join()
    assert greeted == [True]
