"""`record --snapshot`, and `predict` from it: what a real memcached holds, and what is not told."""

import json
import socketserver
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cachemark.endpoints.servers import parse_spec, running
from tests.cli.in_process import Inside
from tests.engine.test_record import Client

_ITEMS, _READ, _SECRET = 300, 100, "customer"
# 48 + 8 for the header, the key with its end, 200 B with theirs: a chunk of 304 B.
_CHUNK_BYTES = 304


@pytest.fixture(scope="module")
def server() -> Generator[str]:
    """A memcached with items, a third of which was read; one of them expires in a day."""
    with running(parse_spec("memcached")) as started:
        client = Client(started.addresses[0])
        for number in range(_ITEMS):
            exptime = 86_400 if number == 0 else 0
            client.ask(f"set {_SECRET}:{number:03d} 0 {exptime} 200\r\n{'x' * 200}", "STORED")
        for number in range(_READ):
            client.ask(f"get {_SECRET}:{number:03d}", "END")
        yield started.addresses[0]


def _held(inside: Inside, server: str, *options: str) -> dict[str, Any]:
    """The answer of `predict` from a new snapshot."""
    recorded = inside("record", server, "--snapshot", "--out", "now.trace", *options)
    assert recorded.returncode == 0, recorded.stderr
    told = inside("predict", "now.trace", "--memory", "1m,64m", "--json")
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def test_a_snapshot_has_what_the_server_holds(inside: Inside, server: str) -> None:
    told = _held(inside, server)
    held = told["held"]
    assert held["items"] == {"items": _ITEMS, "bytes": _ITEMS * _CHUNK_BYTES}
    assert held["never_read"]["items"] == _ITEMS - _READ
    assert held["without_expiry"]["items"] == _ITEMS - 1
    assert told["summary"]["server"]["curr_items"] == _ITEMS
    assert told["origin"]["source"].startswith("metadump of memcached")
    assert all(row["at_least"]["items"] <= row["at_most"]["items"] for row in held["idle"])
    assert [row["items"]["items"] for row in held["given_up"]] == [0, 0]


def test_less_memory_gives_up_what_was_longest_idle(inside: Inside, server: str) -> None:
    client = Client(server)
    keys = [f"large:{number}" for number in range(30)]
    for key in keys:
        client.ask(f"set {key} 0 0 100000\r\n{'x' * 100_000}", "STORED")
    held = _held(inside, server)["held"]
    for key in keys:
        client.ask(f"delete {key}", "DELETED")
    small, large = held["given_up"]
    kept = held["items"]["bytes"] - small["items"]["bytes"]
    assert 900_000 < kept <= 1 << 20
    assert small["never_read"]["items"] <= small["items"]["items"]
    assert large["items"]["items"] == 0


def test_the_screen_and_the_page_say_what_is_not_told(
    inside: Inside, server: str, tmp_path: Path
) -> None:
    _held(inside, server)
    shown = inside("predict", "now.trace", "--memory", "1m", "--out", "page.html")
    assert shown.returncode == 0, shown.stderr
    screen = " ".join(shown.stdout.split())
    assert "66.7 % of the memory holds items that no client has read" in screen
    assert "no misses are known" in screen
    assert "What less memory gives up" in (tmp_path / "page.html").read_text()


def test_keys_are_a_hash_and_a_sample_speaks_of_all(
    inside: Inside, server: str, tmp_path: Path
) -> None:
    held = _held(inside, server, "--sample", "1/2")["held"]
    assert _SECRET.encode() not in (tmp_path / "now.trace").read_bytes()
    # Five standard deviations of a binomial distribution.
    assert held["items"]["items"] == pytest.approx(_ITEMS, abs=5 * 2 * (_ITEMS / 4) ** 0.5)
    _held(inside, server, "--plain-keys")
    assert _SECRET.encode() in (tmp_path / "now.trace").read_bytes()


def test_a_snapshot_is_not_played(inside: Inside, server: str) -> None:
    _held(inside, server)
    checked = inside("predict", "now.trace", "--memory", "1m", "--check", "1")
    assert (checked.returncode, "no requests to play" in checked.stderr) == (2, True)
    limited = inside("record", server, "--snapshot", "--out", "b.trace", "--duration", "1s")
    assert (limited.returncode, "cannot be used with" in limited.stderr) == (2, True)


class _Dumps(socketserver.StreamRequestHandler):
    """A server whose dump is `answer`."""

    answer = b""

    def handle(self) -> None:
        while line := self.rfile.readline():
            if line.startswith(b"version"):
                self.wfile.write(b"VERSION 1.6.0\r\n")
            elif line.startswith(b"stats"):
                self.wfile.write(b"STAT time 1795829300\r\nEND\r\n")
            else:
                self.wfile.write(self.answer)
                return


@contextmanager
def _dumping(answer: bytes) -> Generator[str]:
    handler = type("_Answer", (_Dumps,), {"answer": answer})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"ERROR\r\n", "only memcached has it"),
        (b"key=a exp=-1 la=1 cas=1 fetch=no cls=1 size=68\r\n", "has no end"),
        (b"key=" + b"a" * 100_000, "has no end"),
    ],
)
def test_a_server_without_a_whole_dump_is_refused(
    inside: Inside, tmp_path: Path, answer: bytes, said: str
) -> None:
    with _dumping(answer) as address:
        told = inside("record", address, "--snapshot", "--out", "now.trace")
    assert told.returncode == 2
    assert said in " ".join(told.stderr.split())
    assert not list(tmp_path.iterdir())


def test_garbage_in_a_dump_is_counted(inside: Inside) -> None:
    lines = b"key=a exp=-1 la=1795829200 cas=1 fetch=no cls=1 size=68\r\nkey=b \xff=\r\nEND\r\n"
    with _dumping(lines) as address:
        told = inside("record", address, "--snapshot", "--out", "now.trace", "--json")
    written = json.loads(told.stdout)
    assert (written["records"], written["summary"]["left_out"]) == (
        1,
        {"that were not understood": 1},
    )
