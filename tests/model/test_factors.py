"""Proofs that a factor's level is what it says, on what real and faked sides show."""

import shutil
import socket
from contextlib import closing

import pytest

from cachemark.endpoints.probe.observation import RecordingRelay, threads_with
from cachemark.endpoints.servers import parse_spec, running
from cachemark.model import factors
from cachemark.model.address import parse_host_port
from cachemark.model.factors import ProofAnswer
from cachemark.model.server_stats import ServerStats
from tests.endpoints.servers.raw_requests import ask

BINARY_NOOP = b"\x80\x0a" + bytes(22)


@pytest.mark.parametrize(
    ("level", "streams", "answer"),
    [
        ("binary", [BINARY_NOOP], "proved"),
        ("binary", [b"get k\r\n"], "void"),
        ("binary", [BINARY_NOOP, b"get k\r\n"], "void"),
        ("text", [BINARY_NOOP], "void"),
        ("text", [b"version\r\nset k 0 0 4\r\nmg a\r\nget k\r\n"], "proved"),
        ("text", [b"version\r\nms k 4\r\nget \r\n"], "void"),
        ("meta", [b"version\r\nms k 4\r\nget \r\nmg k v\r\n"], "proved"),
        ("meta", [b"set k 0 0 3\r\nmn\n\r\nget k\r\n"], "void"),
        ("meta", [b""], "unknown"),
        ("text", [], "unknown"),
    ],
)
def test_the_wire_is_recognised_by_its_bytes(
    level: str, streams: list[bytes], answer: ProofAnswer
) -> None:
    assert factors.wire(level, streams).answer == answer


def test_the_evidence_names_the_first_byte() -> None:
    evidence = factors.wire("binary", [b"get k\r\n", BINARY_NOOP]).evidence
    assert evidence == (
        "of the connections 1 of 2 spoke text and 1 of 2 spoke binary; the first byte was 0x67"
    )


@pytest.mark.parametrize(
    ("level", "connections", "idle", "busy", "answer"),
    [
        ("blocking", 60, 5, 65, "proved"),
        ("blocking", 60, 5, 5, "void"),
        ("blocking", 60, 80, 80, "unknown"),
        ("events", 60, 5, 6, "proved"),
        ("events", 60, 5, 65, "void"),
        ("events", 2, 5, 5, "unknown"),
        ("blocking", 2, 5, 7, "unknown"),
    ],
)
def test_the_io_mode_is_recognised_by_the_number_of_threads(
    level: str, connections: int, idle: int, busy: int, answer: ProofAnswer
) -> None:
    proof = factors.server_threads(level, connections, idle, busy)
    assert proof.answer == answer
    assert f"from {idle} to {busy}" in proof.evidence


@pytest.mark.parametrize(
    ("level", "stored", "items", "answer"),
    [
        ("on", 20_000, 100, "proved"),
        ("on", 110_000, 100, "void"),
        ("off", 110_000, 100, "proved"),
        ("off", 20_000, 100, "void"),
        ("on", 20_000, 90, "unknown"),
    ],
)
def test_compression_is_recognised_by_the_stored_bytes(
    level: str, stored: int, items: int, answer: ProofAnswer
) -> None:
    before = ServerStats({"bytes": "500", "curr_items": "5"})
    after = ServerStats({"bytes": str(500 + stored), "curr_items": str(5 + items)})
    assert factors.compression(level, 100_000, 100, before, after).answer == answer


@pytest.mark.parametrize(
    ("level", "after", "answer"),
    [
        ("on", {"cmd_get": "40"}, "proved"),
        ("on", {"cmd_get": "100"}, "void"),
        ("off", {"cmd_get": "100"}, "proved"),
        ("off", {"cmd_get": "40"}, "void"),
        ("on", {"get_hits": "10", "get_misses": "30"}, "proved"),
        ("on", {"get_hits": "10"}, "unknown"),
        ("on", {}, "unknown"),
    ],
)
def test_a_local_cache_is_recognised_by_reads_at_the_server(
    level: str, after: dict[str, str], answer: ProofAnswer
) -> None:
    before = ServerStats(dict.fromkeys(after, "0"))
    proof = factors.local_cache(level, 100, before, ServerStats(after))
    assert proof.answer == answer
    if answer != "unknown" and "cmd_get" in after:
        assert (
            proof.evidence
            == f"100 keys were read, and {after['cmd_get']} of these reads reached the server"
        )


def test_a_local_cache_without_reads_is_unknown() -> None:
    none = ServerStats({"cmd_get": "0"})
    assert factors.local_cache("on", 0, none, none).answer == "unknown"


@pytest.mark.parametrize(
    ("level", "written", "answer"),
    [
        ("noreply", 60, "proved"),
        ("noreply", 800, "void"),
        ("reply", 800, "proved"),
        ("reply", 0, "void"),
        ("reply", None, "unknown"),
    ],
)
def test_replies_are_recognised_by_the_bytes_written(
    level: str, written: int | None, answer: ProofAnswer
) -> None:
    assert factors.replies(level, 100, written).answer == answer


@pytest.mark.parametrize("mode", ["blocking", "events"])
def test_the_embedded_servers_modes_are_proved(mode: str) -> None:
    with running(parse_spec(f"embedded:io={mode},threads=1,memory=16m")) as server:
        threads = threads_with(server, 20)
    assert threads is not None
    assert factors.server_threads(mode, 20, *threads).answer == "proved"
    other = {"blocking": "events", "events": "blocking"}[mode]
    assert factors.server_threads(other, 20, *threads).answer == "void"


def test_the_threads_of_a_remote_server_are_unknown() -> None:
    with (
        running(parse_spec("embedded:memory=16m")) as ours,
        running(parse_spec(f"remote:{ours.addresses[0]}")) as remote,
    ):
        assert threads_with(remote, 2) is None


def test_a_recording_relay_keeps_the_first_bytes_of_each_connection() -> None:
    with running(parse_spec("embedded:memory=16m")) as server:
        with closing(RecordingRelay(server.addresses[0], max_bytes=9)) as relay:
            assert ask(relay.address, b"set k 0 0 1\r\nx\r\n") == b"STORED\r\n"
            assert ask(relay.address, b"get k\r\n", b"END\r\n").startswith(b"VALUE k")
            assert relay.streams == [b"set k 0 0", b"get k\r\n"]
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(parse_host_port(relay.address))


@pytest.mark.skipif(shutil.which("memcached") is None, reason="apt-get install memcached")
def test_binary_is_proved_through_the_relay() -> None:
    with (
        running(parse_spec("memcached:memory=16,threads=1")) as server,
        closing(RecordingRelay(server.addresses[0])) as relay,
    ):
        assert ask(relay.address, BINARY_NOOP, bytes(8))[:2] == b"\x81\x0a"
        assert (
            factors.wire("binary", [bytes(stream) for stream in relay.streams]).answer == "proved"
        )


def test_closing_a_relay_closes_its_open_connections() -> None:
    with (
        running(parse_spec("embedded:memory=16m")) as server,
        closing(RecordingRelay(server.addresses[0])) as relay,
        socket.create_connection(parse_host_port(relay.address)) as client,
    ):
        client.sendall(b"version\r\n")
        assert client.recv(100).startswith(b"VERSION")
        relay.close()
        assert client.recv(100) == b""
