"""`make bench-server`: CPU time of a server per operation, as ratios within one run.

Every server has one thread on one CPU, the generator (`cachemark-engine drive`) another CPU. CPU
time is that of the process's CPU clock, read before and after each window and divided by the
operations that succeeded. In each round the servers are measured in random order. A ratio is that
of two windows of one round; the table has the median, minimum and maximum of the rounds. The null
responder answers each line with the same bytes and does not parse it: the kernel's floor.

Small values are compared with memcached's best protocol. Large ones are compared with memcached by
the same protocol, with TLS if they have TLS; each length has servers of its own.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

from server_processes import LOOPBACK, Server, drive, engine, measure, memcached, version

from cachemark.host import process
from cachemark.host.certificates import Authority

KEY = ["--key-length", "20"]
SMALL_BYTES, SMALL_KEYS = 100, 10_000
MIXES = {"GET": "get=1", "SET": "set=1", "90:10": "get=9,set=1"}
SIZES = {"4k": 4 << 10, "16k": 16 << 10, "100k": 100 << 10, "1m": 1 << 20}
# Connections, and the requests that each has outstanding.
SMALL_LOADS = [(1, 1), (8, 32), (1, 100)]
LARGE_LOADS = [(1, 1), (1, 16)]
# The large values of all keys together: less than half of the memory, so that none is evicted.
LARGE_TOTAL_BYTES = 24 << 20
# Long enough to begin on a busy machine.
PREFILL_WINDOW = "200ms"
MODES = ("events", "uring", "blocking", "busy")


@dataclass(frozen=True)
class Row:
    """A server and the wire protocol to it: a row of the table."""

    server: str
    wire: str
    tls: bool = False

    @property
    def label(self) -> str:
        return f"{self.server} {self.wire}{' TLS' if self.tls else ''}"

    @property
    def instance(self) -> str:
        """The name of the server that it is measured on."""
        return f"{self.server}-tls" if self.tls else self.server


NULL = Row("null", "text")
SMALL_ROWS = [
    NULL,
    *[Row("memcached", wire) for wire in ("text", "meta", "binary")],
    *[Row("events", wire) for wire in ("text", "meta", "binary")],
    *[Row(mode, "text") for mode in ("uring", "blocking", "busy")],
]
LARGE_ROWS = [
    *[row for row in SMALL_ROWS if row != NULL],
    *[Row(server, "text", tls=True) for server in ("memcached", "events", "blocking")],
]


@dataclass(frozen=True)
class Load:
    """The load of a window."""

    title: str
    mix: str
    size: int
    keys: int
    connections: int
    depth: int
    window_ms: int

    @property
    def tape(self) -> list[str]:
        """The options that say which operations it has."""
        shape = [*KEY, "--size", str(self.size), "--keys", str(self.keys)]
        return [*shape, "--mix", self.mix]

    @property
    def drive(self) -> list[str]:
        load = ["--connections", str(self.connections), "--depth", str(self.depth)]
        return [*load, "--no-prefill", "--duration", f"{self.window_ms}ms"]

    @property
    def heading(self) -> str:
        many = "s" * (self.connections > 1)
        return f"{self.title}, {self.connections} connection{many} × depth {self.depth}"


def one_key(folder: Path) -> Path:
    """A tape of one key, whose gets all have the same reply."""
    path = folder / "one.tape"
    shape = [*KEY, "--size", str(SMALL_BYTES), "--keys", "1", "--mix", MIXES["GET"]]
    command = [process.binary_path(), "tape", "write", *shape, "--out", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path


def play(
    servers: dict[str, Server], extra: dict[Row, list[str]], rounds: int, cpu: int
) -> dict[Row, list[float]]:
    """The CPU time per operation of each row, for each round."""
    costs: dict[Row, list[float]] = {row: [] for row in extra}
    for _ in range(rounds):
        for row in random.sample(list(extra), len(extra)):
            costs[row].append(measure(servers[row.instance], row.wire, extra[row], cpu))
    return costs


def ratio(costs: list[float], base: list[float]) -> str:
    """The median ratio of the rounds, and their range."""
    ratios = [cost / low for cost, low in zip(costs, base, strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def best_of_memcached(costs: dict[Row, list[float]]) -> Row:
    """The protocol in which memcached takes the least CPU time."""
    peers = [row for row in costs if row.server == "memcached"]
    return min(peers, key=lambda row: statistics.median(costs[row]))


def peer_of(row: Row) -> Row:
    """memcached with the same protocol, with TLS if this row has it."""
    return Row("memcached", row.wire, row.tls)


def tabulate(
    title: str, costs: dict[Row, list[float]], peer: Callable[[Row], Row], peers: str
) -> None:
    """Print a table. `peer` is memcached's row that a row is compared with."""
    print(f"\n{title:40}{'µs CPU/op':>10}  {'× null':20}× memcached {peers}", flush=True)
    for row, rounds_us in costs.items():
        floor = ratio(rounds_us, costs[NULL]) if NULL in costs else "-"
        cost_us = statistics.median(rounds_us)
        print(f"  {row.label:38}{cost_us:10.2f}  {floor:20}{ratio(rounds_us, costs[peer(row)])}")


@dataclass(frozen=True)
class Bench:
    """The common part of all measurements."""

    server_cpu: int
    generator_cpu: int
    rounds: int
    window_ms: int
    folder: Path

    def engine(self, mode: str, *extra: str, tls: bool = False) -> AbstractContextManager[Server]:
        """A server of the engine with 64 MiB."""
        listen = ["--listen", f"{LOOPBACK}:0", "--threads", "1", "--memory", "64m"]
        command = ["serve", *listen, "--io", mode, *extra]
        return engine(mode, command, self.server_cpu, tls=tls)

    def prefill(self, servers: dict[str, Server], rows: list[Row], load: Load) -> None:
        for row in rows:
            extra = [*load.tape, "--duration", PREFILL_WINDOW]
            drive(servers[row.instance], row.wire, extra, self.generator_cpu)

    def costs(
        self, servers: dict[str, Server], rows: list[Row], load: Load, null: list[str]
    ) -> dict[Row, list[float]]:
        """The CPU time per operation of each row; the null responder plays these options."""
        work = {NULL: null}
        extra = {row: [*work.get(row, load.tape), *load.drive] for row in rows}
        return play(servers, extra, self.rounds, self.generator_cpu)

    def small(self, mixes: list[str]) -> None:
        """Values of 100 bytes, beside the null responder."""
        tape = one_key(self.folder)
        with ExitStack() as stack:
            null = ["null-server", "--listen", f"{LOOPBACK}:0", "--tape", str(tape)]
            servers = {"null": stack.enter_context(engine("null", null, self.server_cpu))}
            servers["memcached"] = stack.enter_context(memcached(self.server_cpu, []))
            for mode in MODES:
                servers[mode] = stack.enter_context(self.engine(mode))
            told = version(servers["memcached"])
            print(f"memcached {told}, keys of 20 and values of {SMALL_BYTES} bytes")
            for title in mixes:
                # The null responder has one reply only, that to a get.
                rows = [row for row in SMALL_ROWS if row != NULL or title == "GET"]
                loads = [
                    Load(title, MIXES[title], SMALL_BYTES, SMALL_KEYS, *shape, self.window_ms)
                    for shape in SMALL_LOADS
                ]
                self.prefill(servers, [row for row in rows if row != NULL], loads[0])
                for load in loads:
                    costs = self.costs(servers, rows, load, ["--tape", str(tape)])
                    best = best_of_memcached(costs)
                    tabulate(load.heading, costs, lambda _, best=best: best, best.wire)

    def large_servers(self, stack: ExitStack) -> dict[str, Server]:
        """Servers that store values of up to 2 MiB, those with TLS too."""
        pair = Authority("bench-server").pair(LOOPBACK)
        certificate, key = self.folder / "certificate.pem", self.folder / "key.pem"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        limit, cpu = ["-I", "2m"], self.server_cpu
        encrypted = ["-Z", "-o", f"ssl_chain_cert={certificate},ssl_key={key}"]
        servers: dict[str, AbstractContextManager[Server]] = {
            "memcached": memcached(cpu, limit),
            "memcached-tls": memcached(cpu, [*limit, *encrypted], tls=True),
        }
        for mode in MODES:
            servers[mode] = self.engine(mode, *limit)
        files = ["--tls-cert", str(certificate), "--tls-key", str(key)]
        for mode in [row.server for row in LARGE_ROWS if row.tls and row.server in MODES]:
            servers[f"{mode}-tls"] = self.engine(mode, *limit, *files, tls=True)
        return {name: stack.enter_context(server) for name, server in servers.items()}

    def large(self, size: str, mixes: list[str]) -> None:
        """Values of this length, each row beside memcached's of the same protocol."""
        with ExitStack() as stack:
            servers = self.large_servers(stack)
            print(f"\nmemcached {version(servers['memcached'])}, values of {size}")
            keys = LARGE_TOTAL_BYTES // SIZES[size]
            loads = [
                Load(f"{title} {size}", MIXES[title], SIZES[size], keys, *shape, self.window_ms)
                for title in mixes
                for shape in LARGE_LOADS
            ]
            self.prefill(servers, LARGE_ROWS, loads[0])
            for load in loads:
                costs = self.costs(servers, LARGE_ROWS, load, [])
                tabulate(load.heading, costs, peer_of, "by the same protocol")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--window-ms", type=int, default=400)
    parser.add_argument("--mixes", default=",".join(MIXES))
    parser.add_argument("--sizes", default="small," + ",".join(SIZES))
    arguments = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    for program in ("taskset", "memcached"):
        if not shutil.which(program):
            sys.exit(f"bench-server: no {program}: apt-get install util-linux memcached")
    if len(cpus) < 2:
        sys.exit("bench-server: two CPUs are needed, one for the server and one for the generator")
    mixes = arguments.mixes.split(",")
    with tempfile.TemporaryDirectory() as folder:
        rounds, window_ms = arguments.rounds, arguments.window_ms
        bench = Bench(cpus[0], cpus[1], rounds, window_ms, Path(folder))
        for size in arguments.sizes.split(","):
            if size == "small":
                bench.small(mixes)
            else:
                bench.large(size, mixes)


if __name__ == "__main__":
    main()
