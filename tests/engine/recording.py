"""Recordings that go on beside a test: by `watch`, and of packets by tcpdump."""

import csv
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from cachemark.host.process import binary_path
from cachemark.model.trace_statistics import WrittenTrace

_WAIT_S = 60.0
_ASK_AGAIN_S = 5.0


class Recording:
    """A recording that has begun. `end` ends it; both return what it says."""

    def __init__(self, engine: subprocess.Popen[str]) -> None:
        self._engine = engine

    def end(self) -> WrittenTrace:
        self._engine.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> WrittenTrace:
        """Wait until it ends by itself."""
        stdout, stderr = self._engine.communicate(timeout=_WAIT_S)
        assert self._engine.returncode == 0, stderr
        return msgspec.json.decode(stdout, type=WrittenTrace)


@contextmanager
def recording(address: str, out: Path, *options: str) -> Generator[Recording]:
    """Record a running memcached."""
    command = [binary_path(), "record", address, "--out", str(out), *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as engine:
        assert engine.stderr is not None
        try:
            assert f"recording {address} until" in engine.stderr.readline()
            yield Recording(engine)
        finally:
            engine.kill()


def recorded_file(capture: Path, out: Path, *options: str) -> WrittenTrace:
    """Read a capture."""
    command = [binary_path(), "record", str(capture), "--out", str(out), *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return msgspec.json.decode(ended.stdout, type=WrittenTrace)


@contextmanager
def captured(
    address: str, out: Path, *, device: str = "lo", snaplen: int = 400, udp_port: str | None = None
) -> Generator[None]:
    """Capture what goes to and from a server; at the end, all of it is in the file.

    The last request is our own: when it is in the file, so are those before.
    """
    tcpdump = shutil.which("tcpdump", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if tcpdump is None:
        pytest.skip("apt-get install tcpdump")
    port = address.rsplit(":", 1)[1]
    # Each packet takes `snaplen` bytes of this buffer of 64 MiB: on a busy machine, many wait.
    command = [tcpdump, "-i", device, "-s", str(snaplen), "-U", "--immediate-mode", "-B", "65536"]
    with (
        out.open("wb") as file,
        subprocess.Popen(
            [*command, "-w", "-", f"tcp port {port} or udp port {udp_port or port}"],
            stdout=file, stderr=subprocess.PIPE, text=True,
        ) as capture,
    ):  # fmt: skip
        try:
            _await_start(capture)
            yield
            _mark_the_end(address, out)
        finally:
            capture.terminate()
        assert capture.stderr is not None
        report = capture.stderr.read()
    dropped = re.search(r"([1-9]\d*) packets? dropped by kernel", report)
    if dropped is not None:
        pytest.skip(f"this machine is too busy to capture: {dropped.group()}")


def _await_start(capture: subprocess.Popen[str]) -> None:
    """Wait until it captures; skip the test if it may not."""
    assert capture.stderr is not None
    said = ""
    while "listening on" not in said:
        line = capture.stderr.readline()
        if not line:
            pytest.skip(f"tcpdump may not capture here: {said.strip()}")
        said += line


def _mark_the_end(address: str, path: Path) -> None:
    """Ask for a key of our own until a request for it is in the file: one may be dropped."""
    mark = f"mark-{address.rsplit(':', 1)[1]}-of-the-end"
    until = time.monotonic() + _WAIT_S
    asked_s = 0.0
    while mark.encode() not in path.read_bytes():
        assert time.monotonic() < until, "the last request is not in the capture"
        if time.monotonic() - asked_s > _ASK_AGAIN_S:
            _ask(address, f"get {mark}")
            asked_s = time.monotonic()
        time.sleep(0.05)


def _ask(address: str, command: str) -> None:
    name, port = address.rsplit(":", 1)
    with socket.create_connection((name, int(port)), timeout=_WAIT_S) as connection:
        connection.sendall(command.encode() + b"\r\n")
        assert connection.recv(64) == b"END\r\n"


def rows(trace: Path, out: Path) -> list[dict[str, str]]:
    """The records of a trace, by way of CSV."""
    subprocess.run(
        [binary_path(), "trace", "convert", str(trace), str(out)], check=True, capture_output=True
    )
    return list(csv.DictReader(out.read_text().splitlines()))
