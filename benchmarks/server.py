"""`make bench-server`: CPU time of a server per operation, as ratios within one run.

Every server has one thread on one CPU, the generator (`cachemark-engine drive`) another CPU. CPU
time is that of the process's CPU clock, read before and after each window and divided by the
operations that succeeded. In each round the servers are measured in random order. A ratio is that
of two windows of one round; the table has the median, minimum and maximum of the rounds. The null
responder answers each line with the same bytes and does not parse it: the kernel's floor.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from cachemark.host import process

SHAPE = ["--key-length", "20", "--size", "100"]
MIXES = {"GET": "get=1", "SET": "set=1", "90:10": "get=9,set=1"}
# Connections, and the requests that each has outstanding.
LOADS = [(1, 1), (8, 32), (1, 100)]
PATIENCE_S = 20.0


@dataclass(frozen=True)
class Server:
    """A running server, and its process."""

    name: str
    address: str
    pid: int


@dataclass(frozen=True)
class Row:
    """A server and the wire protocol to it: a row of the table."""

    server: str
    wire: str

    @property
    def label(self) -> str:
        return f"{self.server} {self.wire}"


NULL = Row("null", "text")
ROWS = [
    NULL,
    Row("memcached", "text"),
    Row("memcached", "meta"),
    Row("memcached", "binary"),
    Row("events", "text"),
    Row("events", "meta"),
    Row("events", "binary"),
    Row("uring", "text"),
    Row("blocking", "text"),
    Row("busy", "text"),
]


def cpu_ns(pid: int) -> int:
    """CPU time of a process, including ended threads."""
    # The clock of another process, as clock_getcpuclockid(3) has it.
    return time.clock_gettime_ns((~pid << 3) | 2)


@contextmanager
def started(command: list[str], cpu: int) -> Generator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        ["taskset", "-c", str(cpu), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait()


@contextmanager
def engine(name: str, arguments: list[str], cpu: int) -> Generator[Server]:
    """Start a server of the engine, which prints its addresses."""
    with started([process.binary_path(), *arguments], cpu) as child:
        assert child.stdout is not None
        announced = json.loads(child.stdout.readline())
        if announced.get("io", name) != name and name != "null":
            raise SystemExit(f"bench-server: no {name} on this kernel, but {announced['io']}")
        yield Server(name, announced["addresses"][0], child.pid)


@contextmanager
def memcached(cpu: int) -> Generator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    user = ["-u", "root"] if os.geteuid() == 0 else []
    command = ["memcached", "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-t", "1", "-m", "64"]
    with started([*command, *user], cpu) as child:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                if time.monotonic() > deadline:
                    raise SystemExit("bench-server: memcached does not listen") from None
                time.sleep(0.01)
        yield Server("memcached", f"127.0.0.1:{port}", child.pid)


def drive(server: Server, wire: str, extra: list[str], cpu: int) -> int:
    """Play a window; returns the number of successful operations."""
    command = [process.binary_path(), "drive", "--server", server.address, "--wire", wire]
    command += ["--json", "--quiet", "--warmup", "0s", "--timeout", "5s", *extra]
    run = subprocess.run(
        ["taskset", "-c", str(cpu), *command], capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise SystemExit(f"bench-server: {' '.join(command)}: {run.stderr or run.stdout[-500:]}")
    operations = json.loads(run.stdout)["measure"]["operations"]
    return sum(int(kind["ok"]) for kind in operations.values())


def measure(server: Server, wire: str, extra: list[str], cpu: int) -> float:
    """CPU time of the server per operation, in µs."""
    before = cpu_ns(server.pid)
    ops = drive(server, wire, extra, cpu)
    return (cpu_ns(server.pid) - before) / ops / 1000


def one_key(folder: Path, mix: str) -> Path:
    """A tape of one key, whose gets all have the same reply."""
    path = folder / "one.tape"
    command = [process.binary_path(), "tape", "write", *SHAPE, "--keys", "1", "--mix", mix]
    subprocess.run([*command, "--out", str(path)], check=True, capture_output=True)
    return path


def version(server: Server) -> str:
    host, port = server.address.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as line:
        line.sendall(b"version\r\n")
        return re.sub(rb"^VERSION |\r\n$", b"", line.recv(100)).decode()


def play(
    servers: dict[str, Server], rows: list[Row], extra: dict[Row, list[str]], rounds: int, cpu: int
) -> dict[Row, list[float]]:
    """The CPU time per operation of each row, for each round."""
    costs: dict[Row, list[float]] = {row: [] for row in rows}
    for _ in range(rounds):
        for row in random.sample(rows, len(rows)):
            costs[row].append(measure(servers[row.server], row.wire, extra[row], cpu))
    return costs


def ratio(costs: list[float], base: list[float]) -> str:
    """The median ratio of the rounds, and their range."""
    ratios = [cost / low for cost, low in zip(costs, base, strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def tabulate(title: str, costs: dict[Row, list[float]]) -> None:
    peers = [row for row in costs if row.server == "memcached"]
    best = min(peers, key=lambda row: statistics.median(costs[row]))
    print(f"\n{title:40}{'µs CPU/op':>10}  {'× null':20}× memcached {best.wire}")
    for row, rounds_us in costs.items():
        floor = ratio(rounds_us, costs[NULL]) if NULL in costs else "-"
        cost_us = statistics.median(rounds_us)
        print(f"  {row.label:38}{cost_us:10.2f}  {floor:20}{ratio(rounds_us, costs[best])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--window-ms", type=int, default=400)
    parser.add_argument("--mixes", default=",".join(MIXES))
    arguments = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    for program in ("taskset", "memcached"):
        if not shutil.which(program):
            sys.exit(f"bench-server: no {program}: apt-get install util-linux memcached")
    if len(cpus) < 2:
        sys.exit("bench-server: two CPUs are needed, one for the server and one for the generator")
    server_cpu, generator_cpu = cpus[0], cpus[1]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        tape = one_key(folder, MIXES["GET"])
        listen = ["--listen", "127.0.0.1:0"]
        null = ["null-server", *listen, "--tape", str(tape)]
        servers = {"null": stack.enter_context(engine("null", null, server_cpu))}
        servers["memcached"] = stack.enter_context(memcached(server_cpu))
        for io in ("events", "uring", "blocking", "busy"):
            serve = ["serve", *listen, "--io", io, "--threads", "1", "--memory", "64m"]
            servers[io] = stack.enter_context(engine(io, serve, server_cpu))
        print(f"memcached {version(servers['memcached'])}, keys of 20 and values of 100 bytes")
        for title in arguments.mixes.split(","):
            # The null responder has one reply only, that to a get.
            rows = [row for row in ROWS if row != NULL or title == "GET"]
            keys = [*SHAPE, "--keys", "10k", "--mix", MIXES[title]]
            for row in rows:
                if row != NULL:
                    drive(
                        servers[row.server], row.wire, [*keys, "--duration", "10ms"], generator_cpu
                    )
            for connections, depth in LOADS:
                load = ["--connections", str(connections), "--depth", str(depth), "--no-prefill"]
                load += ["--duration", f"{arguments.window_ms}ms"]
                work = {row: ["--tape", str(tape)] if row == NULL else keys for row in rows}
                extra = {row: [*work[row], *load] for row in rows}
                heading = (
                    f"{title}, {connections} connection{'s' * (connections > 1)} × depth {depth}"
                )
                tabulate(heading, play(servers, rows, extra, arguments.rounds, generator_cpu))


if __name__ == "__main__":
    main()
