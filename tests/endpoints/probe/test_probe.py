"""The probe: what memcached does is fit, and each known deviation is found, and only it."""

import contextlib
import socket
import socketserver
import threading
import tracemalloc
from collections.abc import Generator
from typing import Any

import pytest

from cachemark.endpoints.probe import (
    EVERYTHING,
    ProbeResult,
    checks,
    dialogue,
    excluded,
    probe,
    probe_new_server,
    raw_connection,
)
from cachemark.endpoints.probe.checks import judge_counters
from cachemark.endpoints.probe.eviction import eviction, judge
from cachemark.endpoints.servers import missing, parse_spec, running
from cachemark.endpoints.servers.quirks import QUIRKS
from cachemark.model.errors import UnsupportedError
from cachemark.model.server_stats import ServerStats
from tests.conftest import Cli
from tests.endpoints.probe.deviant import deviant

RISES = {
    "cmd_set": 3,
    "cmd_get": 3,
    "get_hits": 2,
    "get_misses": 1,
    "delete_hits": 1,
    "delete_misses": 1,
}
# Features that the few lines of the deviant server lack; found in every run of it.
NOT_IN_DEVIANT = {"meta commands", "binary protocol"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that says nothing is given up soon."""
    monkeypatch.setattr(raw_connection, "TIMEOUT_S", 5.0)


def here(text: str) -> str:
    if absent := missing(parse_spec(text)):
        pytest.skip(f"{absent.reason}: {absent.remedy}")
    return text


def unfit(findings: list[ProbeResult]) -> dict[str, ProbeResult]:
    return {finding.name: finding for finding in findings if finding.fit is not True}


def probed(*ways: str) -> dict[str, ProbeResult]:
    with deviant(*ways) as address, running(parse_spec(f"remote:{address}")) as server:
        found = unfit(probe(server))
    return {name: finding for name, finding in found.items() if name not in NOT_IN_DEVIANT}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("memcached:threads=2,memory=16", set()),
        ("embedded:memory=16m", {"meta commands"}),
        ("embedded:io=blocking,memory=16m", {"meta commands"}),
        ("yrmcds:memory=16,threads=2", {"gat", "meta commands", "eviction"}),
        ("nutcracker:memcached", {"gat", "meta commands", "binary protocol"}),
    ],
)
def test_real_servers(text: str, wanted: set[str]) -> None:
    found = unfit(probe_new_server(parse_spec(here(text))))
    assert {name: finding.seen for name, finding in found.items() if name not in wanted} == {}


def test_nothing_of_the_probe_is_left_behind() -> None:
    with running(parse_spec("embedded:memory=16m")) as server:
        assert probe(server)
        assert server.stats()["curr_items"] == "0"


def test_a_server_that_answers_all_correctly_has_no_findings() -> None:
    assert probed() == {}


@pytest.mark.parametrize(
    ("way", "names", "excludes", "seen"),
    [
        ("cas_in_get", {"get without a CAS number"}, set(), "get: answered VALUE"),
        ("wants_space", {"set"}, set(), "with a space before the line end it is stored"),
        (
            "stalls",
            {"set in two segments with a command behind"},
            {"pipeline"},
            "answered STORED\\r\\n; the rest only once more was sent",
        ),
        (
            "answers_noreply",
            {"set without a reply", "delete without a reply"},
            {"set_noreply", "mset_noreply", "delete_noreply"},
            "answered STORED",
        ),
        ("small_values", {"large values"}, set(), "1,000,000 bytes: answered SERVER_ERROR object"),
        ("no_gat", {"gat"}, {"gat"}, "gat: answered ERROR"),
        ("no_incr", {"incr and decr"}, {"incr", "decr"}, "incr: answered ERROR"),
        ("touch_loses", {"touch"}, {"touch"}, "get: answered END"),
        ("untold", {"counters"}, {"conservation"}, "does not report cmd_get, get_hits"),
        (
            "counts_sets_as_deletes",
            {"counters"},
            {"conservation"},
            "delete_hits rose by 4 for 1",
        ),
    ],
)
def test_each_deviation_is_found_and_only_it(
    way: str, names: set[str], excludes: set[str], seen: str
) -> None:
    found = probed(way)
    assert set(found) == names
    assert {what for one in found.values() for what in one.excludes} == excludes
    assert any(seen in finding.seen for finding in found.values())
    assert all(finding.means for finding in found.values())


def test_what_clients_must_know_is_a_quirk() -> None:
    assert probed("cas_in_get")["get without a CAS number"].quirk == "cas_in_get"
    assert probed("wants_space")["set"].quirk == "trailing_space"
    assert {one.quirk for one in dialogue.dialogues()} - {""} <= set(QUIRKS)


def test_several_deviations_at_once() -> None:
    found = probed("wants_space", "no_touch", "closes_on_error")
    assert set(found) == {"set", "touch"}
    assert found["touch"].seen == "touch: answered ERROR\\r\\n"


def test_a_server_that_stores_nothing_is_not_looked_at_further() -> None:
    (finding,) = probed("no_set").values()
    assert finding.excludes == [EVERYTHING]
    assert finding.seen == "answered ERROR\\r\\n"


def test_several_that_run_already_are_each_looked_at() -> None:
    with (
        deviant() as good,
        deviant("no_gat") as other,
        running(parse_spec(f"remote:{good},{other}")) as server,
    ):
        found = unfit(probe(server))
    assert f"gat at {other}" in found
    assert f"gat at {good}" not in found


@pytest.mark.parametrize(
    ("ways", "fit", "seen"),
    [
        ((), True, "0 of the 50 oldest items and 50 of the 50 newest items are left"),
        (("evicts_newest",), False, "49 of the 50 oldest items and"),
    ],
)
def test_the_order_of_eviction(ways: tuple[str, ...], fit: bool, seen: str) -> None:
    with (
        deviant(*ways, limit_items=200) as address,
        running(parse_spec(f"remote:{address}")) as server,
    ):
        finding = eviction(server, b"")
    assert finding.fit is fit
    if fit:
        assert seen in finding.seen
    else:
        assert "evicts the newest items" in finding.means
        assert finding.excludes == ["evictions"]


def test_a_large_server_is_not_filled() -> None:
    with running(parse_spec("embedded:memory=1g")) as server:
        assert eviction(server, b"").fit is None
        assert server.stats()["cmd_set"] == "0"


@pytest.mark.parametrize(
    ("oldest", "newest", "fit"),
    [
        (0, 50, True),
        (25, 45, True),
        (26, 50, False),
        (50, 1, False),
        (20, 20, False),
        (50, 50, None),
    ],
)
def test_what_eviction_means(oldest: int, newest: int, fit: bool | None) -> None:
    assert judge(50, oldest, newest, read=True).fit is fit


def test_counters_that_are_no_numbers_are_not_told() -> None:
    assert (
        judge_counters(ServerStats({"get_hits": "many"}), ServerStats({"get_hits": "more"})).fit
        is False
    )


def test_the_binary_protocol_is_more_than_its_first_byte() -> None:
    """A server that answers `version`, and then refuses to store."""
    refused = bytes([0x81, 1, 0, 0, 0, 0, 0, 0x82]) + bytes(16)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as connection:
                connection.recv(100)
                connection.sendall(bytes([0x81, 0x0B]) + bytes(22))
                connection.recv(1000)
                connection.sendall(refused)
                connection.recv(1)
            # The keys are deleted afterwards; this one knows no text.
            listener.accept()[0].close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        finding = checks.binary(dialogue.ProbedServer(address))
        thread.join()
    assert finding.fit is False
    assert finding.seen.startswith("set: answered with status 130")


def test_what_is_excluded_has_its_reason() -> None:
    findings = [
        ProbeResult(name="gat", fit=False, seen="answered ERROR", excludes=["gat"]),
        ProbeResult(name="eviction", fit=None, seen="too large", excludes=["evictions"]),
        ProbeResult(name="get", fit=True, seen="as it should be", excludes=["get"]),
    ]
    assert excluded(findings) == {"gat": "gat: answered ERROR"}


def test_no_server_has_no_findings() -> None:
    assert probe_new_server(parse_spec("none")) == []


def test_a_server_that_is_not_here_is_unsupported() -> None:
    with pytest.raises(UnsupportedError):
        probe_new_server(parse_spec("emcache:binary=/nowhere/emcache"))


def test_the_verb(cli: Cli) -> None:
    with deviant("no_gat") as address:
        told = cli("probe", f"remote:{address}")
    assert told.returncode == 0
    assert "checks give the same result as memcached" in told.stdout
    assert "gat: answered ERROR" in told.stdout
    assert "cannot be measured: binary, gat, meta" in told.stdout
    whole = cli("probe", "embedded:memory=16m", "--all")
    assert "get of several keys" in whole.stdout
    as_json = cli("probe", "embedded:memory=16m", "--json")
    assert '"name": "eviction"' in as_json.stdout


def test_the_verb_fails_for_a_server_that_cannot_be_timed(cli: Cli) -> None:
    with deviant("no_set") as address:
        told = cli("probe", f"remote:{address}")
    assert told.returncode == 1
    assert "cannot be measured: everything" in told.stdout


class _Sick(socketserver.StreamRequestHandler):
    """Stores, and answers `get` and binary requests with `way`: nothing, or bytes without end."""

    server: Any
    rfile: Any

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            while first := self.rfile.peek(1)[:1]:
                if first == b"\x80":
                    self.rfile.read(24)
                    self._never_end(b"\x81\x0b" + bytes(6) + b"\xff" * 4 + bytes(12))
                    continue
                words = self.rfile.readline().split()
                if words[:1] == [b"set"] and len(words) == 5:
                    self.rfile.read(int(words[4]) + 2)
                    self.wfile.write(b"STORED\r\n")
                elif words[:1] == [b"version"]:
                    self.wfile.write(b"VERSION 1.6.0\r\n")
                elif words[:1] == [b"get"]:
                    self._never_end(b"VALUE %b 0 4000000000\r\n" % words[1])

    def _never_end(self, begin: bytes) -> None:
        while self.server.endless:
            self.wfile.write(begin)
            begin = bytes(2**16)


@contextlib.contextmanager
def sick(*, endless: bool) -> Generator[str]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Sick) as server:
        server.daemon_threads = True
        server.endless = endless  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_silences_are_waited_for_only_so_long_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that stores and says nothing else took a minute and a half."""
    for name, value in (("TIMEOUT_S", 4.0), ("SILENCES_S", 8.0), ("LATER_TIMEOUT_S", 0.03)):
        monkeypatch.setattr(raw_connection, name, value)
    with sick(endless=False) as address, running(parse_spec(f"remote:{address}")) as server:
        stored, *others = probe(server, skip=["mget"])
    assert stored.fit
    silent = [finding.seen for finding in others if "no answer" in finding.seen]
    assert sum("for 4 s" in seen for seen in silent) <= 2
    assert sum("for 0.03 s" in seen for seen in silent) > 5


def test_an_answer_without_end_is_not_kept() -> None:
    with sick(endless=True) as address:
        probed = dialogue.ProbedServer(address)
        tracemalloc.start()
        read = dialogue.dialogues()[0].run(probed)
        packed = checks.binary(probed)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert read.seen.startswith("get: answered without end: VALUE")
    assert packed.seen == "version: announced an answer of 4,294,967,295 bytes"
    assert peak < 2**22


def test_a_request_that_is_not_read_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_connection, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = raw_connection.RawConnection(f"127.0.0.1:{listener.getsockname()[1]}")
        with connection, pytest.raises(raw_connection.AnswerError, match="did not read"):
            connection.send(bytes(2**26))


def test_probe_passes_where_a_run_refuses_nothing(cli: Cli) -> None:
    ended = cli("probe", "embedded")
    assert ended.returncode == 0, ended.stdout
    assert "would refuse" not in ended.stdout
    assert "quick" in ended.stdout


def judged(read: int, written: int) -> tuple[bool | None, list[str], str]:
    after = {**RISES, "bytes_read": read, "bytes_written": written}
    result = judge_counters(
        ServerStats(dict.fromkeys(after, "0")),
        ServerStats({name: str(rise) for name, rise in after.items()}),
    )
    return (
        result.fit,
        sorted(set(result.true_counters) & {"bytes_read", "bytes_written"}),
        result.seen,
    )


def test_values_must_be_in_the_counters_of_bytes() -> None:
    assert judged(30_000, 20_000)[0]
    assert judged(30_000, 19_999) == (
        False,
        ["bytes_read"],
        "bytes_written rose by 19999 for 20000 bytes",
    )
    assert judged(0, 0)[1] == []
