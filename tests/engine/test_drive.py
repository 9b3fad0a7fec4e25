"""`cachemark-engine drive`: its window and its files, against the embedded server."""

import contextlib
import json
import os
import socket
import socketserver
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from cachemark.endpoints.servers import parse_spec, running
from tests.engine.drive_command import drive

ALL_CPUS = ",".join(map(str, sorted(os.sched_getaffinity(0))))
SMALL = ("--keys", "1k", "--warmup", "0s", "--timeout", "10s", "--connections", "4", "--quiet")


@pytest.fixture(scope="module")
def server() -> Generator[str]:
    with running(parse_spec("embedded")) as found:
        yield found.addresses[0]


def test_intervals_are_the_whole_window(server: str, tmp_path: Path) -> None:
    log, table = tmp_path / "x.hlog", tmp_path / "x.hgrm"
    load = ("--rate", "2k", "--duration", "2500ms", "--preset", "etc")
    files = ("--json", "--hlog", str(log), "--hgrm", str(table))
    ran = drive("--server", server, *SMALL, *load, *files)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    operations = told["measure"]["operations"]
    assert sum(kind["ok"] for kind in operations.values()) == sum(
        kind["attempts"] for kind in operations.values()
    )
    gets = operations["get"]
    assert gets["hits"] + gets["misses"] == gets["ok"]
    lines = [line for line in log.read_text().splitlines() if line.startswith("Tag=get,")]
    assert len(lines) >= 2
    assert f"Total count    = {gets['ok']:12d}]" in table.read_text()


def test_a_trace_is_played_once_with_a_cold_cache(server: str, tmp_path: Path) -> None:
    lines = [f"{n / 1e3:g},{kind},once-{n},10" for n in range(50) for kind in ("get", "set", "get")]
    (tmp_path / "t.csv").write_text("time,op,key,size\n" + "\n".join(lines) + "\n")
    words = ("--trace", str(tmp_path / "t.csv"), "--connections", "1", "--quiet", "--json")
    ran = drive("--server", server, *words)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    get = told["measure"]["operations"]["get"]
    assert (get["hits"], get["misses"]) == (50, 50)
    assert told["duration_ms"] is None


def test_what_was_refused_is_told_where_something_was(server: str) -> None:
    words = ("--duration", "100ms", "--key-pattern", "refused:{index}")
    plain = drive("--server", server, *SMALL, *words, "--mix", "set=1")
    assert "ok" in plain.stdout
    assert "not stored" not in plain.stdout
    row = drive("--server", server, *SMALL, *words, "--mix", "add=1").stdout.splitlines()
    (head,) = [line for line in row if "not stored" in line]
    (add,) = [line.split() for line in row if line.startswith(" add ")]
    assert (add[1], add[5] != "0") == ("0", True), head


def test_threads_stay_where_they_are_put(server: str) -> None:
    cpu = str(min(os.sched_getaffinity(0)))
    ran = drive("--server", server, *SMALL, "--duration", "100ms", "--pin", cpu)
    assert ran.returncode == 0, ran.stderr


def test_the_table_has_counts_and_no_judgement(server: str) -> None:
    ran = drive("--server", server, *SMALL, "--duration", "200ms", "--ops", "20")
    assert ran.returncode == 0, ran.stderr
    assert "operations of a tape of 20: later passes found the keys of earlier ones" in ran.stdout
    assert "% of a CPU in each thread" in ran.stdout
    assert "–" not in ran.stdout
    assert not any(word in ran.stdout for word in ("INVALID", "warning", "withheld"))


def test_a_tape_that_is_repeated_is_told_each_second(server: str) -> None:
    brief = [word for word in SMALL if word != "--quiet"]
    words = ("--server", server, *brief, "--duration", "1200ms")
    said = drive(*words, "--ops", "20").stderr
    assert "% (the tape is repeated)" in said
    lines = map(json.loads, drive(*words, "--ops", "20", "--json-lines").stdout.splitlines())
    told = {line["tape_repeated"] for line in lines if "tape_repeated" in line}
    assert told == {True}
    document = json.loads(drive(*words, "--ops", "900000", "--json").stdout)
    counted = sum(of["attempts"] for of in document["measure"]["operations"].values())
    assert document["tape_repeated"] == (counted > 900_000)


def test_what_fails_is_said_on_stderr_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        brief = ("--no-prefill", "--warmup", "0s", "--duration", "50ms", "--timeout", "50ms")
        ran = drive("--server", address, *brief, "--quiet", "--json")
    assert ran.returncode == 1
    (said,) = ran.stderr.splitlines()
    assert "no operation succeeded" in said
    assert said.endswith("timeout)")
    assert json.loads(ran.stdout)["measure"]["operations"]["get"]["ok"] == 0


def test_keys_that_cannot_be_stored_are_told_with_a_remedy() -> None:
    with running(parse_spec("embedded:memory=16m")) as found:
        address = found.addresses[0]
        ran = drive("--server", address, "--keys", "1", "--size", "2m", "--quiet", "--wire", "text")
    assert ran.returncode == 2
    assert "1 keys could not be stored before the window (1 server); the server" in ran.stderr
    assert "item size limit" in ran.stderr


def test_a_value_of_another_run_is_explained(server: str) -> None:
    pattern, get = ("--key-pattern", "other-{index}"), ("--mix", "get=1", "--duration", "50ms")
    drive("--server", server, *SMALL, *pattern, "--seed", "7", *get)
    ran = drive("--server", server, *SMALL, *pattern, "--seed", "8", *get, "--no-prefill", "--json")
    assert ran.returncode == 1
    assert "wrong value" in ran.stderr
    assert "flush_all" in ran.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--search", "p99<1ms"), "unexpected argument '--search'"),
        (("--max-errors", "many"), "--max-errors"),
        (("--io", "uring", "--tls", "unverified"), "io_uring does not support TLS: use epoll"),
        (("--tls", "unverified"), "does not speak TLS"),
        (("--trace", "nowhere.csv"), "nowhere.csv"),
        (("--schedule", "replay"), "name the trace with --trace"),
        (("--preset", "ycsb-e"), "scans"),
        (("--think", "1ms", "--rate", "5"), "--think"),
        (("--replicas",), "--replicas: every key is on the one server; name several"),
        (("--hashing", "ketama"), "--hashing: every key is on the one server"),
        (("--rate", "5", "--ops", "10"), "--ops: an open loop has as many"),
        (("--run", "5"), "--run: no operation of the --mix"),
        (("--no-prefill", "--prefill", "0.5"), "cannot be used with"),
        (("--hlog", "x", "--mix", "set_noreply=1"), "--hgrm has the whole window"),
        (("--pin", ALL_CPUS, "--threads", "1k"), "CPUs for 1000 --threads"),
        (("--pin", "1000"), "may not use CPU 1000"),
        (("--pin", "x"), "is no set of CPUs"),
    ],
)
def test_bad_input_is_one_sentence(words: tuple[str, ...], says: str, server: str) -> None:
    ran = drive("--server", server, *words)
    assert ran.returncode == 2
    assert says in ran.stderr


def test_a_server_that_never_answers_is_given_up() -> None:
    """Not key by key: 10,000 keys, each with its time-out, would take an hour."""
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        address = f"127.0.0.1:{frozen.getsockname()[1]}"
        ran = drive("--server", address, "--quiet", "--timeout", "500ms", "--keys", "10k")
    assert ran.returncode == 2
    assert "the server does not answer in time" in ran.stderr


class _Twice(socketserver.StreamRequestHandler):
    """Says of each value twice that it is stored."""

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            while words := self.rfile.readline().split():
                self.rfile.read(int(words[4]) + 2)
                self.wfile.write(2 * b"STORED\r\n")


def test_a_server_that_answers_what_nobody_asked_is_given_up() -> None:
    """Not after a connection for each key: no operation failed, and 10,000 keys took 80 minutes."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Twice) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        address = f"127.0.0.1:{server.server_address[1]}"
        ran = drive("--server", address, "--quiet", "--keys", "10k", "--wire", "text")
        server.shutdown()
    assert ran.returncode == 2
    assert "of 10000 keys were stored before the window" in ran.stderr
