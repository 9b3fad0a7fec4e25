"""CPU per operation of the native client against the floor, and against the peers that are on PATH.

The floor is the null client: it writes requests that were made beforehand, reads into a scratch
buffer, and parses nothing. The native client plays as it comes, with an interval recorded and
logged each second, and over io_uring where the kernel has it. Client and server have a CPU each;
every program plays gets of 100-byte values, one after the other in each round, in an order that
changes; CPU time is the scheduler's.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from cachemark import histogram
from cachemark.process import binary_path

KEYS, VALUE_BYTES, CONNECTIONS = 10_000, 100, 50
SHAPE = ["--size", str(VALUE_BYTES), "--key-length", "32", "--mix", "get=1"]
SHARES = (0.2, 0.5, 0.8)


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


def engine(cpus: set[int], *arguments: str) -> Any:
    """What a verb of the engine prints, as JSON."""
    command = pinned(cpus, binary_path(), *arguments)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"{' '.join(command)}: {ended.stderr.strip()}")
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


# How else the native client may play.
VARIANTS = {
    "native, intervals": ("--hlog", os.devnull),
    "native, uring": ("--io", "uring"),
}


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
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as line:
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
    host, _, port = case.address.rpartition(":")
    command = PEERS[name].format(
        host=host, port=port, depth=case.depth, connections=CONNECTIONS, bytes=VALUE_BYTES,
        keys=case.keys, seconds=max(1, round(seconds)),
    )  # fmt: skip
    before, used = served(case.address), _children_us()
    ended = subprocess.run(pinned(cpus, *command.split()), capture_output=True, check=False)
    if ended.returncode:
        print(f"{name} ended with {ended.returncode}", file=sys.stderr)
        return None
    ops = served(case.address) - before
    return Run(ops, _children_us() - used, ops / max(1, round(seconds)))


def _children_us() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e6


def compare(
    cases: list[Case], cpus: set[int], peers: list[str], rounds: int, seconds: float
) -> None:
    """Print CPU per operation and its ratio to the floor of the same round."""
    players: dict[str, Callable[[Case, set[int], float], Run | None]] = {
        "null client": play_null,
        "native": play_native,
    }
    players |= {name: partial(play_variant, more) for name, more in VARIANTS.items()}
    if not has_uring(cases[0]):
        del players["native, uring"]
    players |= {name: partial(play_peer, name) for name in peers}
    print(f"{'server':9}{'depth':>6}  {'client':18}{'ops/s':>10}{'CPU µs/op':>11}{'× floor':>9}")
    costs: list[float] = []
    for case in cases:
        runs: dict[str, list[Run | None]] = {name: [] for name in players}
        for _ in range(rounds):
            for name in random.sample(list(players), len(players)):
                runs[name].append(players[name](case, cpus, seconds))
        for name, told in runs.items():
            _row(case, name, told, runs["null client"])
        costs.extend(_ratios(runs["native, intervals"], runs["native"]))
    print(f"an interval a second: {statistics.median(costs):.3f} × the CPU of none")


def _ratios(told: list[Run | None], other: list[Run | None]) -> list[float]:
    """CPU time per operation of runs, each over that of the same round."""
    pairs = [(run, low) for run, low in zip(told, other, strict=True) if run and low and run.ops]
    return [run.cpu_us / run.ops / (low.cpu_us / low.ops) for run, low in pairs]


def _row(case: Case, name: str, told: list[Run | None], floor: list[Run | None]) -> None:
    pairs = [(run, low) for run, low in zip(told, floor, strict=True) if run and low and run.ops]
    if not pairs:
        return
    each = [run.cpu_us / run.ops for run, _ in pairs]
    ratios = _ratios(told, floor)
    rate = statistics.median(run.rate for run, _ in pairs)
    print(
        f"{case.server:9}{case.depth:6}  {name:18}{rate:10.0f}{statistics.median(each):11.2f}"
        f"{statistics.median(ratios):9.2f}  {min(ratios):.2f} to {max(ratios):.2f}"
    )


def lags(case: Case, cpus: set[int], seconds: float) -> None:
    """Print how late sends are in an open loop, at shares of the highest rate."""
    highest = play_native(case, cpus, seconds).rate
    print(f"\nopen loop, {CONNECTIONS} connections, of {highest:.0f} ops/s at most; send lag in µs")
    print(f"{'share':>6}{'ops/s':>10}{'p50':>8}{'p90':>8}{'p99':>8}{'p99.9':>8}  own part of p99")
    for share in SHARES:
        rate = f"{highest * share:.0f}"
        told = native(case, cpus, seconds, "--rate", rate, "--schedule", "poisson")
        lag, late = histogram.decode(told["lag"]), histogram.decode(told["late"])
        row = "".join(f"{lag.percentile(p) / 1e3:8.1f}" for p in (50, 90, 99, 99.9))
        done = told["operations"]["get"]["ok"] / told["elapsed_ns"] * 1e9
        print(f"{share:6.0%}{done:10.0f}{row}  {late.percentile(99) / 1e3:8.1f}")


def main() -> None:
    """Run the whole of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each window")
    parser.add_argument("--no-peers", action="store_true", help="the engine's own alone")
    asked = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    ours, theirs = {cpus[0]}, {cpus[-1]}
    if ours == theirs:
        print("one CPU for both: the figures are those of a fight for it", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        tape = Path(folder) / "tape"
        engine_tape = ["tape", "write", "--out", str(tape), "--keys", "1", *SHAPE, "--ops", "1000"]
        subprocess.run([binary_path(), *engine_tape], check=True, capture_output=True)
        with (
            serving(theirs, "null-server", "--tape", str(tape)) as null,
            serving(theirs, "serve", "--listen", "127.0.0.1:0", "--threads", "1") as embedded,
        ):
            fill = Case("embedded", embedded, 16, KEYS)
            engine(
                ours, "drive", "--server", embedded, "--keys", str(KEYS), *SHAPE, "--json",
                "--quiet", "--warmup", "0s", "--duration", "10ms",
            )  # fmt: skip
            cases = [
                Case(name, address, depth, keys)
                for name, address, keys in (("null", null, 1), ("embedded", embedded, KEYS))
                for depth in (1, 16)
            ]
            found = [name for name in PEERS if shutil.which(name) and not asked.no_peers]
            compare(cases, ours, found, asked.rounds, asked.seconds)
            lags(fill._replace(depth=1), ours, asked.seconds)


if __name__ == "__main__":
    main()
