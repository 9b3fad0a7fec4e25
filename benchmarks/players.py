"""The programs that `make bench-client` compares: the null client, native, and peers on PATH."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from metered import SPARE_S, FailedError, metered, pinned

from cachemark.checks.fidelity.cases import CaseLoad
from cachemark.checks.fidelity.tools import TOOLS, Tool, ToolJob
from cachemark.host.process import binary_path
from cachemark.model.address import parse_host_port

KEYS, VALUE_BYTES, CONNECTIONS = 10_000, 100, 50
# On a busy machine a short window may end before any operation begins: it is played again.
NOTHING_PLAYED = "no operation began in the window"
MAX_REPEATS = 10
STDERR_CHARACTERS = 200
# Keys of 32 bytes whose names no peer uses: they store other values.
KEY_PATTERN = "native:{index:025}"
SHAPE = ["--size", str(VALUE_BYTES), "--key-pattern", KEY_PATTERN, "--mix", "get=1"]


class Run(NamedTuple):
    """The result of one program in one round."""

    ops: int
    cpu_us: float
    rate: float


class Case(NamedTuple):
    """A server, the keys that are read, and the number of connections with their pipeline depth."""

    server: str
    address: str
    depth: int
    keys: int
    connections: int = CONNECTIONS


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


def engine(cpus: set[int], *arguments: str) -> Any:
    """Run a verb of the engine; returns the JSON that it prints. Raises FailedError."""
    command = pinned(cpus, binary_path(), *arguments)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    for _ in range(MAX_REPEATS):
        if NOTHING_PLAYED in ended.stderr:
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
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


def found_peers() -> dict[str, Tool]:
    """The load generators on PATH that can play the work of these benchmarks."""
    return {name: tool for name, tool in TOOLS.items() if tool.program()}


def peer_job(tool: Tool, case: Case, folder: Path, seconds: float) -> ToolJob:
    """The work of a case for a peer, which ends by itself only after the measured time."""
    folder.mkdir(exist_ok=True)
    return ToolJob(
        program=tool.program() or "",
        port=parse_host_port(case.address).port,
        folder=folder,
        load=CaseLoad(
            callers=case.connections, value_bytes=VALUE_BYTES, keys=case.keys, timeout_ms=10_000
        ),
        depth=case.depth,
        closed_s=math.ceil(seconds + SPARE_S),
        saves_cpu=True,
    )


def store_keys(tool: Tool, case: Case, cpus: set[int], folder: Path) -> None:
    """Store the keys that a peer is going to read. Raises FailedError."""
    if tool.fill is None:
        return
    command = pinned(cpus, *tool.fill(peer_job(tool, case, folder, 0)))
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if ended.returncode:
        said = ended.stderr.strip()[-STDERR_CHARACTERS:]
        raise FailedError(f"{tool.name}: storing keys ended with {ended.returncode}: {said}")


def play_peer(tool: Tool, folder: Path, case: Case, cpus: set[int], seconds: float) -> Run | None:
    """Play a peer on keys that are stored; None if it cannot play the case."""
    if case.server == "null" or (case.depth > 1 and not tool.pipelines):
        return None
    command = tool.command(peer_job(tool, case, folder, seconds))
    found = metered(command, cpus, case.address, seconds)
    return Run(found.ops, found.cpu_us, found.rate)
