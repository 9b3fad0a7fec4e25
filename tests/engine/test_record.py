"""A real memcached is recorded by its `watch`: what was played is in the trace, to the count."""

import json
import socket
import socketserver
import subprocess
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cachemark.endpoints.servers import parse_spec, running
from cachemark.host.process import binary_path
from tests.engine.recording import recording, rows

# The recording of a server, as text.
_SECRET = "customer"


@pytest.fixture(scope="module")
def address() -> Generator[str]:
    with running(parse_spec("memcached")) as server:
        yield server.addresses[0]


class Client:
    """A connection that waits for each reply."""

    def __init__(self, address: str) -> None:
        name, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((name, int(port)), timeout=30)

    def ask(self, command: str, end: str) -> str:
        self._socket.sendall(command.encode() + b"\r\n")
        seen = b""
        while not seen.endswith(end.encode() + b"\r\n"):
            seen += self._socket.recv(65536)
        return seen.decode()


def play(client: Client) -> list[tuple[str, str, str]]:
    """Some requests of each kind. Returns operation, key and size, as the log can know them."""
    played: list[tuple[str, str, str]] = []
    for number in range(50):
        key, size = f"{_SECRET}:{number}", 10 + number
        client.ask(f"get {key}", "END")
        client.ask(f"set {key} 0 60 {size}\r\n{'x' * size}", "STORED")
        client.ask(f"get {key}", "END")
        played += [("get", key, ""), ("set", key, str(size)), ("get", key, str(size))]
    keys = [f"{_SECRET}:{number}" for number in range(20)]
    client.ask(f"get {' '.join(keys)}", "END")
    played += [("get", key, str(10 + number)) for number, key in enumerate(keys)]
    return played


def test_what_was_played_is_recorded_to_the_count(address: str, tmp_path: Path) -> None:
    client = Client(address)
    play(client)
    with recording(address, tmp_path / "a.trace", "--plain-keys") as recorder:
        played = play(client)
        written = recorder.end()
    play(client)
    found = [
        (row["op"], row["key"], row["size"])
        for row in rows(tmp_path / "a.trace", tmp_path / "a.csv")
    ]
    # In the second round, the first get of each key hits.
    seconds = {key: size for operation, key, size in played if operation == "set"}
    wanted = [(operation, key, size or seconds[key]) for operation, key, size in played]
    assert not Counter(wanted) - Counter(found)
    # The look-up of the first store, if the server had to wait for a CPU in the middle of it.
    assert len(found) - len(wanted) in (0, 1)
    assert (written.origin.keys, written.summary.left_out) == ("plain", {})
    assert written.summary.operations == Counter(operation for operation, *_ in found)
    assert (written.summary.server["cmd_get"], written.summary.server["cmd_set"]) == (120, 50)
    assert written.summary.server["get_misses"] == 0


def test_a_load_is_what_the_server_counted(address: str, tmp_path: Path) -> None:
    load = [binary_path(), "drive", "--server", address, "--keys", "500", "--rate", "2000"]
    load += [
        "--mix",
        "get=9,set=1",
        "--prefill",
        "0",
        "--warmup",
        "0s",
        "--duration",
        "1s",
        "--json",
    ]
    with recording(address, tmp_path / "a.trace") as recorder:
        subprocess.run(load, check=True, capture_output=True)
        written = recorder.end()
    assert written.summary.left_out == {}
    operations, server = written.summary.operations, written.summary.server
    assert operations["get"] - server["cmd_get"] in (0, 1)
    assert server["cmd_get"] > 0
    assert operations["set"] == server["cmd_set"] > 0
    assert written.records == operations["get"] + operations["set"]


def test_nobody_reads_keys_unless_asked(address: str, tmp_path: Path) -> None:
    with recording(address, tmp_path / "a.trace") as recorder:
        play(Client(address))
        written = recorder.end()
    assert written.origin.keys == "anonymous"
    assert _SECRET.encode() not in (tmp_path / "a.trace").read_bytes()
    keys = {row["key"] for row in rows(tmp_path / "a.trace", tmp_path / "a.csv")}
    assert len(keys) == 50
    assert all(key.startswith("a:") for key in keys)


def test_a_sample_has_whole_keys(address: str, tmp_path: Path) -> None:
    with recording(address, tmp_path / "a.trace", "--plain-keys", "--sample", "1/2") as recorder:
        play(Client(address))
        written = recorder.end()
    assert written.summary.operations["set"] == 50
    counts = Counter(row["key"] for row in rows(tmp_path / "a.trace", tmp_path / "a.csv"))
    assert 0 < len(counts) < 50
    for key, count in counts.items():
        assert count >= (4 if int(key.partition(":")[2]) < 20 else 3)


def test_it_ends_by_itself(address: str, tmp_path: Path) -> None:
    with recording(address, tmp_path / "a.trace", "--duration", "100ms") as timed:
        assert timed.wait().records == 0
    for limit in (["--requests", "30"], ["--size", "1k"]):
        with recording(address, tmp_path / "a.trace", *limit) as limited:
            play(Client(address))
            assert limited.wait().records >= (30 if limit[0] == "--requests" else 5)


def test_a_recording_is_played(address: str, tmp_path: Path) -> None:
    with recording(address, tmp_path / "a.trace") as recorder:
        play(Client(address))
        written = recorder.end()
    command = [binary_path(), "tape", "write", "--out", str(tmp_path / "a.tape")]
    command += ["--trace", str(tmp_path / "a.trace"), "--schedule", "replay"]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    assert json.loads(ended.stdout)["ops"] == written.records >= 170


class _Redis(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while self.rfile.readline():
            self.wfile.write(b"-ERR unknown command\r\n")


@contextmanager
def _redis() -> Generator[str]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Redis) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_what_is_no_memcached_is_refused(tmp_path: Path) -> None:
    with _redis() as other:
        for address, words in ((other, "to `version`"), ("127.0.0.1:1", "no connection")):
            command = [binary_path(), "record", address, "--out", str(tmp_path / "a.trace")]
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
            assert ended.returncode == 2
            assert words in ended.stderr
            assert len(ended.stderr.splitlines()) == 1
            assert not list(tmp_path.iterdir())
