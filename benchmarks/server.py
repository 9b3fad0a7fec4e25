"""`make bench-server`: CPU time of a server per operation, as ratios within one run.

Every server has one thread on one CPU, the generator (`cachemark-engine drive`) another CPU. CPU
time is that of the process, read before and after each window and divided by the operations that
succeeded; of a server that polls, the polls that found nothing are subtracted. In each round the
servers are measured in random order. A ratio is that of two windows of one round; a table has the
median of the rounds. The null responder answers each line with the same bytes and does not parse
it: the kernel's floor.

Small values are compared with memcached's best protocol. Large ones are compared with memcached by
the same protocol, with TLS if they have TLS; each length has servers of its own.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

from server_processes import (
    LOOPBACK,
    Server,
    drive,
    engine,
    measure,
    memcached,
    resident_kib,
    version,
)

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
# A short tape, which is played again and again, is soon made.
TAPE_OPS = 4000
# Long enough to begin on a busy machine.
PREFILL_WINDOW = "200ms"
WIRES = ("text", "meta", "binary")
MODES = ("events", "uring", "blocking", "busy")
IDLE_CONNECTIONS = 1000
# Buffers that all connections share are used before.
WARM_CONNECTIONS = 50


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
PLAIN_ROWS = [Row(server, wire) for server in ("memcached", *MODES) for wire in WIRES]
# io_uring has no TLS here.
TLS_SERVERS = ("memcached", "events", "blocking", "busy")
LARGE_ROWS = [*PLAIN_ROWS, *[Row(server, wire, True) for server in TLS_SERVERS for wire in WIRES]]
SMALL_ROWS = [
    row for row in PLAIN_ROWS if row.server in ("memcached", "events") or row.wire == "text"
]

Costs = dict[Row, list[float]]


@dataclass(frozen=True)
class Load:
    """The load of a window."""

    mix: str
    size: int
    keys: int
    connections: int
    depth: int
    window_ms: int

    @property
    def tape(self) -> list[str]:
        """The options that say which operations it has."""
        shape = [*KEY, "--size", str(self.size), "--keys", str(self.keys), "--ops", str(TAPE_OPS)]
        return [*shape, "--mix", MIXES[self.mix]]

    @property
    def drive(self) -> list[str]:
        load = ["--connections", str(self.connections), "--depth", str(self.depth)]
        return [*load, "--no-prefill", "--duration", f"{self.window_ms}ms"]

    @property
    def heading(self) -> str:
        return f"{self.mix} {self.connections}×{self.depth}"


def one_key(folder: Path) -> Path:
    """A tape of one key, whose gets all have the same reply."""
    path = folder / "one.tape"
    shape = [*KEY, "--size", str(SMALL_BYTES), "--keys", "1", "--mix", MIXES["GET"]]
    command = [process.binary_path(), "tape", "write", *shape, "--out", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path


def ratios(costs: list[float], base: list[float]) -> list[float]:
    return [cost / low for cost, low in zip(costs, base, strict=True)]


def best_of_memcached(_: Row, costs: Costs) -> Row:
    """The protocol in which memcached takes the least CPU time."""
    peers = [row for row in costs if row.server == "memcached"]
    return min(peers, key=lambda row: statistics.median(costs[row]))


def memcached_alike(row: Row, _: Costs) -> Row:
    """memcached with the same protocol, with TLS if this row has it."""
    return Row("memcached", row.wire, row.tls)


def tabulate(
    title: str, columns: dict[str, Costs], peer: Callable[[Row, Costs], Row], rows: list[Row]
) -> None:
    """Print memcached's µs and the others' ratios, and the ratios above 1 with their ranges."""
    print(f"\n{title:24}" + "".join(f"{column:>12}" for column in columns), flush=True)
    above: list[str] = []
    for row in rows:
        cells: list[str] = []
        for column, costs in columns.items():
            if row not in costs:
                cells.append("-")
            elif row.server == "memcached":
                cells.append(f"{statistics.median(costs[row]):.2f} µs")
            else:
                found = ratios(costs[row], costs[peer(row, costs)])
                cells.append(f"{statistics.median(found):.2f}")
                if statistics.median(found) > 1:
                    span = f"{min(found):.2f}–{max(found):.2f}"
                    above.append(f"  above 1: {row.label}, {column}: {cells[-1]} ({span})")
        print(f"{row.label:24}" + "".join(f"{cell:>12}" for cell in cells))
    print("\n".join(above), flush=True)


@dataclass(frozen=True)
class Bench:
    """The common part of all measurements."""

    server_cpu: int
    generator_cpu: int
    rounds: int
    window_ms: int
    mixes: list[str]
    rows: re.Pattern[str]
    folder: Path

    def engine(self, mode: str, *extra: str, tls: bool = False) -> AbstractContextManager[Server]:
        """A server of the engine with 64 MiB."""
        listen = ["--listen", f"{LOOPBACK}:0", "--threads", "1", "--memory", "64m"]
        command = ["serve", *listen, "--io", mode, *extra]
        return engine(mode, command, self.server_cpu, tls=tls)

    def chosen(self, rows: list[Row]) -> list[Row]:
        """The rows that were asked for, and memcached's."""
        return [row for row in rows if row.server == "memcached" or self.rows.search(row.label)]

    def loads(self, size: int, keys: int, shapes: list[tuple[int, int]]) -> list[Load]:
        return [
            Load(mix, size, keys, *shape, self.window_ms) for mix in self.mixes for shape in shapes
        ]

    def columns(
        self, servers: dict[str, Server], rows: list[Row], loads: list[Load], null: list[str]
    ) -> dict[str, Costs]:
        """By heading, the CPU time per operation of each row for each round."""
        for server in servers.values():
            if server.name != NULL.server:
                extra = [*loads[0].tape, "--duration", PREFILL_WINDOW]
                drive(server, "text", extra, self.generator_cpu)
        found: dict[str, Costs] = {}
        for load in loads:
            # The null responder has one reply only, that to a get.
            playing = [row for row in rows if row != NULL or load.mix == "GET"]
            extra = {row: [*(null if row == NULL else load.tape), *load.drive] for row in playing}
            costs: Costs = {row: [] for row in playing}
            for _ in range(self.rounds):
                for row in random.sample(playing, len(playing)):
                    server = servers[row.instance]
                    costs[row].append(measure(server, row.wire, extra[row], self.generator_cpu))
            found[load.heading] = costs
        return found

    def small(self) -> None:
        """Values of 100 bytes, beside the null responder."""
        tape = one_key(self.folder)
        with ExitStack() as stack:
            null = ["null-server", "--listen", f"{LOOPBACK}:0", "--tape", str(tape)]
            servers = {"null": stack.enter_context(engine("null", null, self.server_cpu))}
            servers["memcached"] = stack.enter_context(memcached(self.server_cpu, []))
            for mode in MODES:
                servers[mode] = stack.enter_context(self.engine(mode))
            rows = self.chosen([NULL, *SMALL_ROWS])
            loads = self.loads(SMALL_BYTES, SMALL_KEYS, SMALL_LOADS)
            columns = self.columns(servers, rows, loads, ["--tape", str(tape)])
        tabulate(f"{SMALL_BYTES} bytes", columns, best_of_memcached, rows)

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
        for mode in [mode for mode in MODES if mode in TLS_SERVERS]:
            servers[f"{mode}-tls"] = self.engine(mode, *limit, *files, tls=True)
        return {name: stack.enter_context(server) for name, server in servers.items()}

    def large(self, size: str) -> None:
        """Values of this length, each row beside memcached's of the same protocol."""
        with ExitStack() as stack:
            servers, rows = self.large_servers(stack), self.chosen(LARGE_ROWS)
            loads = self.loads(SIZES[size], LARGE_TOTAL_BYTES // SIZES[size], LARGE_LOADS)
            columns = self.columns(servers, rows, loads, [])
        tabulate(f"{size} bytes", columns, memcached_alike, rows)

    def memory(self) -> None:
        """Memory of connections that have stored and read a value each, and wait."""
        print(f"\n{IDLE_CONNECTIONS:,} connections, KiB of memory")
        _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
        limit = ["-c", str(2 * IDLE_CONNECTIONS)]
        servers = {"memcached": memcached(self.server_cpu, limit)}
        servers |= {mode: self.engine(mode, "--max-connections", limit[1]) for mode in MODES}
        for name, server in servers.items():
            with server as running, ExitStack() as open_ones:
                use_connections(running, WARM_CONNECTIONS, open_ones)
                before = resident_kib(running.pid)
                use_connections(running, IDLE_CONNECTIONS, open_ones)
                print(f"{name:24}{resident_kib(running.pid) - before:12}", flush=True)


def use_connections(server: Server, count: int, stack: ExitStack) -> None:
    """Open connections; each stores and reads a value of 100 bytes."""
    host, port = server.address.rsplit(":", 1)
    value = b"v" * SMALL_BYTES
    for _ in range(count):
        line = stack.enter_context(socket.create_connection((host, int(port))))
        stream = stack.enter_context(line.makefile("rwb"))
        stream.write(b"set k 0 0 %d\r\n%b\r\nget k\r\n" % (SMALL_BYTES, value))
        stream.flush()
        while stream.readline() != b"END\r\n":
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--window-ms", type=int, default=150)
    parser.add_argument("--mixes", default=",".join(MIXES))
    parser.add_argument("--sizes", default=",".join(["small", *SIZES, "memory"]))
    parser.add_argument(
        "--rows", type=re.compile, default="", help="a pattern, such as 'busy.*TLS'"
    )
    arguments = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    for program in ("taskset", "memcached"):
        if not shutil.which(program):
            sys.exit(f"bench-server: no {program}: apt-get install util-linux memcached")
    if len(cpus) < 2:
        sys.exit("bench-server: two CPUs are needed, one for the server and one for the generator")
    with tempfile.TemporaryDirectory() as folder:
        mixes, rounds, window_ms = arguments.mixes.split(","), arguments.rounds, arguments.window_ms
        bench = Bench(cpus[0], cpus[1], rounds, window_ms, mixes, arguments.rows, Path(folder))
        with memcached(cpus[0], []) as peer:
            print(f"memcached {version(peer)}; load of the machine {os.getloadavg()[0]:.1f}")
        for size in arguments.sizes.split(","):
            play = {"small": bench.small, "memory": bench.memory}
            play.get(size, lambda size=size: bench.large(size))()


if __name__ == "__main__":
    main()
