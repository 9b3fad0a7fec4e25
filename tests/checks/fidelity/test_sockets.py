"""The cases over real sockets: what is exact is asserted, times are only asked to be consistent."""

import json
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cachemark.checks.fidelity import cases
from cachemark.checks.fidelity.judge import PercentileResult
from cachemark.endpoints.clients import parse_client, registry
from cachemark.endpoints.fleet import Fleet, RunMonitor
from cachemark.endpoints.servers import parse_spec, running
from cachemark.host import process
from cachemark.model.address import parse_host_port
from cachemark.model.protocol import Prepare, RunRequest
from tests.cli.in_process import Inside
from tests.conftest import Cli

FAULTS = ["drops", "wrong values", "closes"]
STATES = {"passed", "failed", "not judged"}


def consistent(finding: dict[str, Any]) -> None:
    """A pass has every percentile in its place; anything else says why."""
    assert finding["state"] in STATES, finding
    assert (finding["state"] == "passed") == (finding.get("why", "") == ""), finding
    lines = [PercentileResult(**line) for line in finding.get("lines", [])]
    if finding["state"] == "passed":
        assert all(line.holds for line in lines), finding
    for count in finding.get("counts", []):
        assert count["injected"] == count["measured"], finding


@pytest.mark.slow("plays every quick case")
def test_native_through_the_command_line(cli: Cli) -> None:
    """Whatever the host is like: counts are right, and a verdict is never without its reason."""
    ended = cli("fidelity", "native", "--quick", "--tries", "1", "--json")
    found = json.loads(ended.stdout)
    assert [one["case"] for one in found] == [n for n, case in cases().items() if case.quick]
    for finding in found:
        consistent(finding)
        if finding["case"] in FAULTS:
            assert finding["state"] == "passed", finding
    assert ended.returncode == any(one["state"] == "failed" for one in found), ended.stderr


def test_bad_input_names_what_there_is(inside: Inside) -> None:
    for arguments, said in [
        (["--case", "nonsense"], "cases: constant, list"),
        (["--tool", "ab"], "tools: memtier_benchmark, mutilate"),
        (["--tries", "0"], "at least 1"),
        (["python/nobody"], "no client 'python/nobody'"),
    ]:
        ended = inside("fidelity", *arguments)
        assert ended.returncode == 2, ended
        assert said in ended.stderr


STATS_BYTES = len(b"stats\r\n")
KEYS, SIZE, OPS = 500, 100, 4000
# The bytes of each operation, keys of 20 bytes: request and reply of the text protocol.
SET_BYTES = (len(b"set  0 0 100\r\n") + 20 + SIZE + 2, len(b"STORED\r\n"))
GET_BYTES = (len(b"get \r\n") + 20, len(b"VALUE  0 100\r\n") + 20 + SIZE + 2 + len(b"END\r\n"))


def counters(asked: socket.socket) -> tuple[dict[str, int], int]:
    """memcached's counters and the length of the reply that tells them."""
    asked.sendall(b"stats\r\n")
    reply = b""
    while not reply.endswith(b"END\r\n"):
        reply += asked.recv(65536)
    rows = [line.split() for line in reply.decode().splitlines() if line.startswith("STAT")]
    return {row[1]: int(row[2]) for row in rows if row[2].isdigit()}, len(reply)


def test_a_real_memcached_saw_what_the_native_client_says(tmp_path: Path) -> None:
    """F30: gets, hits, sets and every byte on the wire, both ways."""
    tape = tmp_path / "tape"
    words = ["--keys", str(KEYS), "--size", str(SIZE), "--key-length", "20", "--mix", "get=9,set=1"]
    write = [process.binary_path(), "tape", "write", "--out", str(tape), *words, "--ops", str(OPS)]
    with process.start(write) as writer:
        assert writer.wait(30)
    spec = parse_client("native", registry(process.binary_path()))
    watch = RunMonitor(progress=lambda _: None, silence_timeout_s=60)
    with (
        running(parse_spec("memcached:threads=1,memory=64")) as server,
        Fleet(spec.client.command, 1, cpus="", name="native") as fleet,
    ):
        fleet.hello(30)
        request = Prepare(servers=server.addresses, tape=str(tape), connections=4, threads=2)
        fleet.prepare(request, 30)
        fleet.run(RunRequest(phase="prefill"), watch)
        with closing(socket.create_connection(parse_host_port(server.addresses[0]), 30)) as asked:
            before, told_bytes = counters(asked)
            done = fleet.run(RunRequest(phase="measure", ops=OPS), watch)
            after, _ = counters(asked)
    rises = {name: after[name] - before[name] for name in after if name in before}
    gets, sets = done.operations["get"], done.operations["set"]
    assert gets.attempts + sets.attempts == OPS
    assert (gets.ok, gets.hits, sets.ok) == (gets.attempts, gets.attempts, sets.attempts)
    assert (rises["cmd_get"], rises["get_hits"], rises["cmd_set"]) == (gets.ok, gets.hits, sets.ok)
    assert rises["get_misses"] == gets.misses == 0
    assert rises["curr_items"] == 0
    read = gets.ok * GET_BYTES[0] + sets.ok * SET_BYTES[0] + STATS_BYTES
    written = gets.ok * GET_BYTES[1] + sets.ok * SET_BYTES[1] + told_bytes
    assert (rises["bytes_read"], rises["bytes_written"]) == (read, written)
    assert gets.value_bytes + sets.value_bytes == OPS * SIZE
