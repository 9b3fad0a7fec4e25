"""Client libraries play a tape, tcpdump and `watch` record it: nothing is missing, to the count."""

import getpass
import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from cachemark.checks.conformance.tape_values import tape_commands
from cachemark.checks.conformance.worker_driver import WorkerDriver
from cachemark.endpoints.clients import Client, ClientSpec
from cachemark.endpoints.servers import parse_spec, running
from cachemark.host.process import binary_path
from cachemark.model.protocol import Ready, RunRequest
from cachemark.model.trace_statistics import WrittenTrace
from tests.engine.recording import captured, recorded_file, recording, rows
from tests.engine.trace_blocks import outcomes
from tests.workers import worker_driver

_OPS = 300
_TAPE = (
    "--keys", "60", "--key-length", "9..40", "--exptime", "77", "--run", "6",
    "--ops", str(_OPS), "--prefill", "1",
)  # fmt: skip
# The kinds that a log of `watch` shows as they were asked, and those that it does not.
_PLAIN = ("get=5", "set=2", "mget=2")
_OTHERS = ("mset=1", "add=1", "replace=1", "delete=1", "touch=1", "gat=1", "set_noreply=1")
# No client waits for replies to these, so the kernel makes few, large segments of them.
_LARGE = ("set_noreply=1",)
CLIENTS = worker_driver.clients({
    "native", "c/libmemcached", "go/gomemcache", "java/spymemcached", "node/memjs", "perl/fast",
    "php/memcached", "python/pymemcache", "python/meta-memcache", "python/pylibmc", "ruby/dalli",
    "rust/async-memcached",
})  # fmt: skip


@pytest.fixture(scope="module")
def address() -> Generator[str]:
    with running(parse_spec("memcached")) as server:
        yield server.addresses[0]


@pytest.fixture(params=CLIENTS)
def driver(request: Any, tmp_path: Path) -> Generator[WorkerDriver]:
    client: Client = request.param
    with WorkerDriver(ClientSpec(text=client.id, client=client), tmp_path) as driver:
        yield driver


def played(
    driver: WorkerDriver, wire: str, address: str, kinds: tuple[str, ...], size: str = "10..3000"
) -> Path | None:
    """Play a tape with the client's kinds among these; None: it has no such kind."""
    can = [kind for kind in kinds if driver.can(kind.partition("=")[0])]
    if not can:
        return None
    tape = driver.tape(*_TAPE, "--size", size, "--mix", ",".join(can))
    request = worker_driver.patient(servers=[address], wire=wire, tape=str(tape))
    if not isinstance(driver.ask(request), Ready):
        return None
    driver.play(RunRequest(phase="prefill"))
    driver.play(RunRequest(phase="measure", ops=_OPS))
    return tape


def wanted(tape: Path) -> Counter[tuple[str, ...]]:
    """Operation, key and size of what a tape has."""
    sizes = {"set", "add", "replace"}
    commands = [command for group in tape_commands(tape) for command in group]
    return Counter(
        (each.verb, each.key.decode(), str(len(each.value)) if each.verb in sizes else "")
        for each in commands
    )


def found(trace: Path, keys: set[str]) -> Counter[tuple[str, ...]]:
    """The same of a trace. Some libraries ask for keys of their own."""
    return Counter(
        (op, row["key"], "" if op in {"get", "gat"} else row["size"])
        for row in rows(trace, trace.with_suffix(".csv"))
        if row["key"] in keys
        for op in [row["op"].replace("gets", "get")]
    )


def admitted(watched: WrittenTrace) -> int:
    """How many requests the log of a busy memcached lacks, as its counters and the recorder say."""
    operations, server = watched.summary.operations, watched.summary.server
    recorded = sum(operations.values()) - operations.get("delete", 0)
    counted = server.get("cmd_get", 0) + server.get("cmd_set", 0) + server.get("cmd_touch", 0)
    return sum(watched.summary.left_out.values()) + max(0, counted - recorded)


def test_packets_and_watch_record_what_a_library_plays(
    driver: WorkerDriver, address: str, tmp_path: Path
) -> None:
    pcap, packets, watch = (tmp_path / name for name in ("a.pcap", "packets.trace", "watch.trace"))
    port = address.rsplit(":", 1)[1]
    for wire in driver.wires:
        with (
            captured(address, pcap, snaplen=800),
            recording(address, watch, "--plain-keys") as recorder,
        ):
            tape = played(driver, wire, address, _PLAIN)
            watched = recorder.end()
        assert tape is not None
        read = recorded_file(pcap, packets, "--plain-keys", "--port", port)
        expected = wanted(tape)
        keys = {key for _, key, _ in expected}
        assert read.summary.left_out == {}
        assert found(packets, keys) == expected, f"{wire}: packets"
        assert (expected - found(watch, keys)).total() <= admitted(watched), f"{wire}: watch"


def test_packets_tell_every_kind(driver: WorkerDriver, address: str, tmp_path: Path) -> None:
    pcap, trace = tmp_path / "a.pcap", tmp_path / "packets.trace"
    port = address.rsplit(":", 1)[1]
    for wire in driver.wires:
        for kind in _OTHERS:
            with captured(address, pcap, snaplen=65535 if kind in _LARGE else 16384):
                tape = played(driver, wire, address, (kind,), size="10..100")
            if tape is not None:
                read = recorded_file(pcap, trace, "--plain-keys", "--port", port)
                expected = wanted(tape)
                assert read.summary.left_out == {}
                assert found(trace, {key for _, key, _ in expected}) == expected, f"{wire}: {kind}"


def test_hits_and_misses_are_those_of_the_server(address: str, tmp_path: Path) -> None:
    pcap, trace = tmp_path / "a.pcap", tmp_path / "a.trace"
    load = [binary_path(), "drive", "--server", address, "--keys", "3000", "--ops", "4000"]
    load += ["--mix", "get=8,set=1", "--prefill", "0.3", "--warmup", "0s", "--duration", "300ms"]
    with captured(address, pcap, device="any"):
        ended = subprocess.run([*load, "--json"], check=True, capture_output=True, text=True)
    counts = json.loads(ended.stdout)["measure"]["operations"]["get"]
    recorded_file(pcap, trace, "--port", address.rsplit(":", 1)[1])
    shown = Counter(outcomes(trace.read_bytes()))
    assert shown["get", True] == counts["hits"] > 0
    # One miss is that of the mark, if the capture has its reply; some marks are asked for again.
    assert 0 <= shown["get", False] - counts["misses"] <= 3
    assert counts["misses"] > 0


@pytest.fixture
def datagrams(tmp_path: Path) -> Generator[tuple[str, str]]:
    """A memcached that also has UDP: its address, and the port of UDP."""
    ports = tmp_path / "ports"
    command = ["memcached", "-l", "127.0.0.1", "-p", "-1", "-U", "-1", "-u", getpass.getuser()]
    env = {**os.environ, "MEMCACHED_PORT_FILENAME": str(ports)}
    with subprocess.Popen(command, env=env) as server:
        try:
            until = time.monotonic() + 60
            while not ports.exists() or ports.read_text().count("INET:") < 2:
                assert time.monotonic() < until, "no memcached"
                time.sleep(0.05)
            named = dict(line.split(" INET: ") for line in ports.read_text().splitlines())
            yield f"127.0.0.1:{named['TCP']}", named["UDP"]
        finally:
            server.kill()


def test_datagrams_on_loopback_count_once(datagrams: tuple[str, str], tmp_path: Path) -> None:
    """`-i any` sees each of them twice. Some replies are many datagrams."""
    address, port = datagrams
    pcap, trace = tmp_path / "a.pcap", tmp_path / "a.trace"
    load = [binary_path(), "drive", "--keys", "200", "--size", "0..9k", "--timeout", "20s"]
    load += ["--mix", "get=1", "--warmup", "0s", "--duration", "300ms", "--json"]
    stored = [*load, "--server", address, "--prefill", "0.5", "--ops", "1"]
    subprocess.run(stored, check=True, capture_output=True)
    asked = [*load, "--server", f"udp:127.0.0.1:{port}", "--no-prefill", "--rate", "2000"]
    with captured(address, pcap, device="any", udp_port=port):
        ended = subprocess.run(asked, check=True, capture_output=True, text=True)
    counts = json.loads(ended.stdout)["measure"]["operations"]["get"]
    recorded_file(pcap, trace, "--port", port)
    shown = Counter(outcomes(trace.read_bytes()))
    assert shown == {("get", True): counts["hits"], ("get", False): counts["misses"]}
    assert counts["hits"] > 0 < counts["misses"]


def test_stdin_ends_after_a_signal(address: str, tmp_path: Path) -> None:
    """Its writer goes on, and what came before is a whole trace."""
    pcap, trace = tmp_path / "a.pcap", tmp_path / "a.trace"
    with captured(address, pcap):
        pass
    command = [binary_path(), "record", "-", "--out", str(trace)]
    command += ["--port", address.rsplit(":", 1)[1]]
    ours, theirs = os.pipe()
    with subprocess.Popen(
        command, stdin=ours, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as engine:
        assert engine.stderr is not None
        assert "packets from stdin until" in engine.stderr.readline()
        os.write(theirs, pcap.read_bytes())
        engine.send_signal(signal.SIGTERM)
        stdout, _ = engine.communicate(timeout=600)
    os.close(ours)
    os.close(theirs)
    assert engine.returncode == 0
    assert json.loads(stdout)["summary"]["operations"] == {"get": 1}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "no capture of packets"),
        (b"", "is empty"),
        (None, "no such file; a memcached is HOST:PORT"),
    ],
)
def test_what_is_no_capture_is_refused(content: bytes | None, words: str, tmp_path: Path) -> None:
    path, out = tmp_path / "a.pcap", tmp_path / "a.trace"
    if content is not None:
        path.write_bytes(content)
    command = [binary_path(), "record", str(path), "--out", str(out)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert words in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert not out.exists()
