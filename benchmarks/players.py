"""The programs that `make bench-client` compares: the null client, native, and peers on PATH."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

from cachemark.host.process import binary_path
from cachemark.model.address import parse_host_port

KEYS, VALUE_BYTES, CONNECTIONS = 10_000, 100, 50
# On a busy machine a short window may end before any operation begins: it is played again.
NOTHING_PLAYED = "no operation began in the window"
MAX_REPEATS = 10
SHAPE = ["--size", str(VALUE_BYTES), "--key-length", "32", "--mix", "get=1"]


class Run(NamedTuple):
    """The result of one program in one round."""

    ops: int
    cpu_us: float
    rate: float


class Case(NamedTuple):
    """A server, and the pipeline depth of the connections to it."""

    server: str
    address: str
    depth: int
    keys: int


def pinned(cpus: set[int], *command: str) -> list[str]:
    """The command, restricted to some CPUs."""
    return ["taskset", "-c", ",".join(map(str, cpus)), *command]


@contextmanager
def serving(cpus: set[int], *arguments: str) -> Generator[str]:
    """Start a server of the engine; yields its address."""
    child = subprocess.Popen(
        pinned(cpus, binary_path(), *arguments, "--stop-with-stdin"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    try:
        yield json.loads(child.stdout.readline())["addresses"][0]
    finally:
        child.kill()
        child.wait()


class FailedError(Exception):
    """A program failed; the text has its exit status and its stderr."""


def engine(cpus: set[int], *arguments: str) -> Any:
    """Run a verb of the engine; returns the JSON that it prints. Raises FailedError."""
    command = pinned(cpus, binary_path(), *arguments)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    for _ in range(MAX_REPEATS):
        if NOTHING_PLAYED in ended.stderr:
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
    # A window in which the generator was late is INVALID, and still has its lag.
    if ended.returncode and "INVALID" not in ended.stderr:
        said = ended.stderr.strip() or "nothing on stderr"
        raise FailedError(f"{' '.join(command)} ended with {ended.returncode}: {said}")
    return json.loads(ended.stdout)


def native(case: Case, cpus: set[int], seconds: float, *more: str) -> dict[str, Any]:
    """The native client's measured window."""
    load = ["--connections", str(CONNECTIONS), "--depth", str(case.depth), "--quiet", "--json"]
    keys = ["--keys", str(case.keys), *SHAPE, "--no-prefill"]
    times = ["--warmup", "300ms", "--duration", f"{int(seconds * 1000)}ms", "--timeout", "10s"]
    drive = ["drive", "--server", case.address, *keys, *load, *times, *more]
    return engine(cpus, *drive)["measure"]


def play_native(case: Case, cpus: set[int], seconds: float, *more: str) -> Run:
    """Play the native client: it verifies every reply, and records response and service times."""
    measured = native(case, cpus, seconds, *more)
    ops = measured["operations"]["get"]["ok"]
    cpu_us = (measured["cpu_user_ns"] + measured["cpu_system_ns"]) / 1e3
    return Run(ops, cpu_us, ops / measured["elapsed_ns"] * 1e9)


# Record and log an interval each second.
INTERVALS = ("--hlog", os.devnull)
# Other options of the native client that are compared.
VARIANTS = {"native, intervals": INTERVALS, "native, uring": ("--io", "uring")}


def play_variant(more: tuple[str, ...], case: Case, cpus: set[int], seconds: float) -> Run:
    """Play the native client with more options."""
    return play_native(case, cpus, seconds, *more)


def has_uring(case: Case) -> bool:
    """Whether the kernel allows io_uring."""
    shape = ["--keys", str(case.keys), *SHAPE, "--no-prefill", "--io", "uring", "--quiet"]
    drive = [binary_path(), "drive", "--server", case.address, *shape, "--duration", "10ms"]
    ended = subprocess.run([*drive, "--warmup", "0s"], capture_output=True, check=False)
    return ended.returncode != 2


def play_null(case: Case, cpus: set[int], seconds: float) -> Run:
    """Play the null client: the least that any client can cost."""
    load = ["--connections", str(CONNECTIONS), "--depth", str(case.depth)]
    keys = ["--keys", str(case.keys), *SHAPE]
    times = ["--warmup", "300ms", "--duration", f"{int(seconds * 1000)}ms"]
    result = engine(cpus, "null-client", "--server", case.address, *keys, *load, *times)
    cpu_us = (result["cpu_user_ns"] + result["cpu_system_ns"]) / 1e3
    return Run(result["ops"], cpu_us, result["ops"] / result["elapsed_ns"] * 1e9)


def requested_keys(address: str) -> int:
    """The server's `cmd_get`: how many keys clients have requested."""
    with socket.create_connection(parse_host_port(address)) as line:
        line.sendall(b"stats\r\n")
        stats = b""
        while not stats.endswith(b"END\r\n"):
            stats += line.recv(1 << 16)
    (row,) = [row for row in stats.split(b"\r\n") if row.startswith(b"STAT cmd_get ")]
    return int(row.split()[2])


# The commands of the peers, which play the same work. `play_peer` fills in `{…}`.
PEERS = {
    "memtier_benchmark": (
        "memtier_benchmark -s {host} -p {port} -P memcache_text -t 1 -c {connections} "
        "--pipeline {depth} --ratio 0:1 -d {bytes} --key-maximum {keys} --test-time {seconds} "
        "--hide-histogram"
    ),
    "memtier": (
        "memtier -s {host} -p {port} -P memcache_text -t 1 -c {connections} "
        "--pipeline {depth} --ratio 0:1 -d {bytes} --key-maximum {keys} --test-time {seconds} "
        "--hide-histogram"
    ),
    "mutilate": (
        "mutilate -s {host}:{port} -T 1 -c {connections} -d {depth} -K 32 -V {bytes} -u 0 "
        "-r {keys} -t {seconds}"
    ),
    "mcperf": (
        "mcperf -s {host}:{port} -T 1 -c {connections} -d {depth} -K 32 -V {bytes} -u 0 "
        "-r {keys} -t {seconds}"
    ),
    # It has no pipelining, and a tenth of its operations are writes.
    "memcaslap": "memcaslap -s {host}:{port} -T 1 -c {connections} -X {bytes} -t {seconds}s",
    "memaslap": "memaslap -s {host}:{port} -T 1 -c {connections} -X {bytes} -t {seconds}s",
}


def play_peer(name: str, case: Case, cpus: set[int], seconds: float) -> Run | None:
    """Play a peer. Its CPU time is that of the whole process, its gets are those of the server."""
    if case.server == "null" or ("{depth}" not in PEERS[name] and case.depth > 1):
        return None
    server = parse_host_port(case.address)
    command = PEERS[name].format(
        host=server.host, port=server.port, depth=case.depth, connections=CONNECTIONS,
        bytes=VALUE_BYTES, keys=case.keys, seconds=max(1, round(seconds)),
    )  # fmt: skip
    before, used_us = requested_keys(case.address), _children_us()
    ended = subprocess.run(pinned(cpus, *command.split()), capture_output=True, check=False)
    if ended.returncode:
        raise FailedError(f"{name} ended with {ended.returncode}")
    ops = requested_keys(case.address) - before
    return Run(ops, _children_us() - used_us, ops / max(1, round(seconds)))


def _children_us() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e6
