"""What plays in `make bench-client`: the null client, the native one, and the peers on PATH."""

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
SHAPE = ["--size", str(VALUE_BYTES), "--key-length", "32", "--mix", "get=1"]


class Run(NamedTuple):
    """What one program did in one round."""

    ops: int
    cpu_us: float
    rate: float


class Case(NamedTuple):
    """A server and how deep its connections are used."""

    server: str
    address: str
    depth: int
    keys: int


def pinned(cpus: set[int], *command: str) -> list[str]:
    """A command that stays where it belongs."""
    return ["taskset", "-c", ",".join(map(str, cpus)), *command]


@contextmanager
def serving(cpus: set[int], *arguments: str) -> Generator[str]:
    """An engine's server: its address."""
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
    """A program ended otherwise than it should have: how, and what it said."""


def engine(cpus: set[int], *arguments: str) -> Any:
    """What a verb of the engine prints, as JSON. Raises FailedError."""
    command = pinned(cpus, binary_path(), *arguments)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        said = ended.stderr.strip() or "nothing on stderr"
        raise FailedError(f"{' '.join(command)} ended with {ended.returncode}: {said}")
    return json.loads(ended.stdout)


def native(case: Case, cpus: set[int], seconds: float, *more: str) -> dict[str, Any]:
    """The native client's measured window."""
    load = ["--connections", str(CONNECTIONS), "--depth", str(case.depth), "--quiet", "--json"]
    keys = ["--keys", str(case.keys), *SHAPE, "--no-prefill"]
    times = ["--warmup", "300ms", "--duration", f"{int(seconds * 1000)}ms"]
    drive = ["drive", "--server", case.address, *keys, *load, *times, *more]
    return engine(cpus, *drive)["measure"]


def play_native(case: Case, cpus: set[int], seconds: float, *more: str) -> Run:
    """Every reply parsed and verified, both times recorded."""
    told = native(case, cpus, seconds, *more)
    ops = told["operations"]["get"]["ok"]
    cpu_us = (told["cpu_user_ns"] + told["cpu_system_ns"]) / 1e3
    return Run(ops, cpu_us, ops / told["elapsed_ns"] * 1e9)


# An interval a second, logged.
INTERVALS = ("--hlog", os.devnull)
# How else the native client may play.
VARIANTS = {"native, intervals": INTERVALS, "native, uring": ("--io", "uring")}


def play_variant(more: tuple[str, ...], case: Case, cpus: set[int], seconds: float) -> Run:
    """The same with these options."""
    return play_native(case, cpus, seconds, *more)


def has_uring(case: Case) -> bool:
    """Whether the kernel lets the native client have io_uring."""
    shape = ["--keys", str(case.keys), *SHAPE, "--no-prefill", "--io", "uring", "--quiet"]
    drive = [binary_path(), "drive", "--server", case.address, *shape, "--duration", "10ms"]
    ended = subprocess.run([*drive, "--warmup", "0s"], capture_output=True, check=False)
    return ended.returncode != 2


def play_null(case: Case, cpus: set[int], seconds: float) -> Run:
    """The floor."""
    load = ["--connections", str(CONNECTIONS), "--depth", str(case.depth)]
    keys = ["--keys", str(case.keys), *SHAPE]
    times = ["--warmup", "300ms", "--duration", f"{int(seconds * 1000)}ms"]
    told = engine(cpus, "null-client", "--server", case.address, *keys, *load, *times)
    cpu_us = (told["cpu_user_ns"] + told["cpu_system_ns"]) / 1e3
    return Run(told["ops"], cpu_us, told["ops"] / told["elapsed_ns"] * 1e9)


def served(address: str) -> int:
    """How many keys a server was asked for."""
    with socket.create_connection(parse_host_port(address)) as line:
        line.sendall(b"stats\r\n")
        told = b""
        while not told.endswith(b"END\r\n"):
            told += line.recv(1 << 16)
    (row,) = [row for row in told.split(b"\r\n") if row.startswith(b"STAT cmd_get ")]
    return int(row.split()[2])


# What a peer is called, and how it plays the same. `{…}` is filled in.
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
    # It has no pipelining, and writes a tenth.
    "memcaslap": "memcaslap -s {host}:{port} -T 1 -c {connections} -X {bytes} -t {seconds}s",
    "memaslap": "memaslap -s {host}:{port} -T 1 -c {connections} -X {bytes} -t {seconds}s",
}


def play_peer(name: str, case: Case, cpus: set[int], seconds: float) -> Run | None:
    """A program as its users run it: its CPU time whole, its gets as the server counted them."""
    if case.server == "null" or ("{depth}" not in PEERS[name] and case.depth > 1):
        return None
    server = parse_host_port(case.address)
    command = PEERS[name].format(
        host=server.host, port=server.port, depth=case.depth, connections=CONNECTIONS,
        bytes=VALUE_BYTES, keys=case.keys, seconds=max(1, round(seconds)),
    )  # fmt: skip
    before, used = served(case.address), _children_us()
    ended = subprocess.run(pinned(cpus, *command.split()), capture_output=True, check=False)
    if ended.returncode:
        raise FailedError(f"{name} ended with {ended.returncode}")
    ops = served(case.address) - before
    return Run(ops, _children_us() - used, ops / max(1, round(seconds)))


def _children_us() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e6
