"""Servers of the engine end in order, whichever signal asks for it."""

import re
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cachemark.host.process import binary_path

SERVERS = [
    ["serve", "--listen", "127.0.0.1:0", "--unix", "SOCKET"],
    ["null-server", "--listen", "unix:SOCKET"],
    ["fault-proxy", "--upstream", "127.0.0.1:1"],
    ["distance", "--upstream", "127.0.0.1:1", "--round-trip", "1ms"],
    ["awake"],
]


@contextmanager
def started(socket: Path, words: list[str], *env: str) -> Generator[subprocess.Popen[bytes]]:
    """A server that listens, started by `env` with these options; it is killed if it goes on."""
    command = ["env", *env, binary_path(), *(word.replace("SOCKET", str(socket)) for word in words)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline()
            yield running
        finally:
            running.kill()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("words", SERVERS, ids=lambda words: words[0])
def test_a_signal_ends_it_in_order(
    tmp_path: Path, words: list[str], number: signal.Signals
) -> None:
    socket = tmp_path / "socket"
    with started(socket, words) as running:
        running.send_signal(number)
        assert running.wait(60) == 0
    assert not socket.exists()


@pytest.mark.parametrize("words", SERVERS, ids=lambda words: words[0])
def test_a_signal_that_the_parent_blocks_ends_it_too(tmp_path: Path, words: list[str]) -> None:
    with started(tmp_path / "socket", words, "--block-signal") as running:
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0


@pytest.mark.parametrize("words", SERVERS[1:], ids=lambda words: words[0])
def test_a_hangup_that_is_ignored_stays_so(tmp_path: Path, words: list[str]) -> None:
    """As under nohup."""
    with started(tmp_path / "socket", words, "--ignore-signal=HUP") as running:
        status = Path(f"/proc/{running.pid}/status").read_text(encoding="utf-8")
        (ignored,) = re.findall(r"^SigIgn:\s*([0-9a-f]+)$", status, re.MULTILINE)
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
    assert int(ignored, 16) & 1 << (signal.SIGHUP - 1)
