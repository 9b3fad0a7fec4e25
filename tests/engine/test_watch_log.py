"""A log of a real memcached's `watch` becomes the operations that were sent, at their times."""

import json
import re
import socket
import struct
import subprocess
from pathlib import Path

from cachemark.endpoints.servers import parse_spec, running
from cachemark.host.process import binary_path
from cachemark.model.tape_header import read_header

# memcached writes no zeros before the microseconds.
_FEW_DIGITS = re.compile(rb"ts=\d+\.\d{1,5} ")
_LOOKUP_US = 20
_LINE = re.compile(r"ts=(\d+)\.(\d+) gid=(\d+) type=(\w+) key=(\S+)")


def _ask(connection: socket.socket, command: bytes, end: bytes) -> None:
    connection.sendall(command)
    seen = b""
    while not seen.endswith(end):
        seen += connection.recv(4096)


def _connect(address: str) -> socket.socket:
    name, port = address.rsplit(":", 1)
    return socket.create_connection((name, int(port)), timeout=30)


def _watched(address: str) -> str:
    """The log of gets, until one is in the first tenth of a second, then of a set."""
    with _connect(address) as watcher, _connect(address) as client:
        _ask(watcher, b"watch fetchers mutations\r\n", b"OK\r\n")
        log = b""
        while not _FEW_DIGITS.search(log):
            _ask(client, b"get k\r\n", b"END\r\n")
            log += watcher.recv(65536)
        _ask(client, b"set last 0 60 3\r\nabc\r\n", b"STORED\r\n")
        while b"type=item_store key=last" not in log or not log.endswith(b"\n"):
            log += watcher.recv(65536)
    return log.decode()


def test_a_real_log_has_its_own_times(tmp_path: Path) -> None:
    with running(parse_spec("memcached")) as server:
        log = _watched(server.addresses[0])
    (tmp_path / "day.log").write_text(log)
    command = [binary_path(), "tape", "write", "--out", str(tmp_path / "day.tape"),
               "--trace", str(tmp_path / "day.log"), "--schedule", "replay"]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    written = json.loads(ended.stdout)
    assert (written["trace"]["format"], written["trace"]["left_out"]) == ("memcached", {})
    lines = sorted(
        (int(seconds) * 10**6 + int(microseconds), int(gid), kind, key)
        for seconds, microseconds, gid, kind, key in _LINE.findall(log)
    )
    assert any(len(microseconds) < 6 for _, microseconds, *_ in _LINE.findall(log))
    # A store looks up its key first: at once, but on a machine that lets it wait.
    looked_up, stored = (line for line in lines if line[3] == "last")
    played = [line for line in lines if line != looked_up or stored[0] - line[0] > _LOOKUP_US]
    header = read_header(tmp_path / "day.tape")
    assert header.op_count == len(played)
    data = (tmp_path / "day.tape").read_bytes()
    due = struct.unpack_from(f"<{header.op_count}Q", data, header.times_at)
    assert list(due) == [(at - played[0][0]) * 1000 for at, *_ in played]
