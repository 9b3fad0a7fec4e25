"""`make bench-server`: what an operation costs a server in CPU time, as ratios within one run.

Every server has one thread on one CPU, the generator (`cachemark-engine drive`) another CPU. CPU
time is the scheduler's own (a process's CPU clock), taken before and after each window and
divided by the operations that succeeded in it. Servers take turns in each round, in an order that
changes. A ratio is that of two windows of one round; the table has the median of the rounds, the
least and the most. The null responder answers each line with the same bytes and reads none of
them: the kernel's floor.
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
    """A server that runs, and its process."""

    name: str
    address: str
    pid: int


@dataclass(frozen=True)
class Row:
    """A server spoken to on a wire."""

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
    """CPU time of a process by the scheduler, with its threads that have ended."""
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
    """A server of the engine's own, which says where it listens."""
    with started([process.binary_path(), *arguments], cpu) as child:
        assert child.stdout is not None
        said = json.loads(child.stdout.readline())
        if said.get("io", name) != name and name != "null":
            raise SystemExit(f"bench-server: {name} is not to be had here: it is {said['io']}")
        yield Server(name, said["addresses"][0], child.pid)


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
    """Operations that succeeded in a window."""
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
    """Microseconds of the server's CPU time for an operation."""
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
    """What an operation costs by row, round for round."""
    costs: dict[Row, list[float]] = {row: [] for row in rows}
    for _ in range(rounds):
        for row in random.sample(rows, len(rows)):
            costs[row].append(measure(servers[row.server], row.wire, extra[row], cpu))
    return costs


def ratio(costs: list[float], base: list[float]) -> str:
    """The median of the rounds, and their range."""
    each = [cost / low for cost, low in zip(costs, base, strict=True)]
    return f"{statistics.median(each):.2f} ({min(each):.2f}–{max(each):.2f})"


def tabulate(title: str, costs: dict[Row, list[float]]) -> None:
    peers = [row for row in costs if row.server == "memcached"]
    best = min(peers, key=lambda row: statistics.median(costs[row]))
    print(f"\n{title:40}{'µs CPU/op':>10}  {'× null':20}× memcached {best.wire}")
    for row, each in costs.items():
        floor = ratio(each, costs[NULL]) if NULL in costs else "-"
        cost = statistics.median(each)
        print(f"  {row.label:38}{cost:10.2f}  {floor:20}{ratio(each, costs[best])}")


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
    there, here = cpus[0], cpus[1]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        tape = one_key(folder, MIXES["GET"])
        listen = ["--listen", "127.0.0.1:0"]
        null = ["null-server", *listen, "--tape", str(tape)]
        servers = {"null": stack.enter_context(engine("null", null, there))}
        servers["memcached"] = stack.enter_context(memcached(there))
        for io in ("events", "uring", "blocking", "busy"):
            serve = ["serve", *listen, "--io", io, "--threads", "1", "--memory", "64m"]
            servers[io] = stack.enter_context(engine(io, serve, there))
        print(f"memcached {version(servers['memcached'])}, keys of 20 and values of 100 bytes")
        for title in arguments.mixes.split(","):
            # Its one reply is that to a get.
            rows = [row for row in ROWS if row != NULL or title == "GET"]
            usual = [*SHAPE, "--keys", "10k", "--mix", MIXES[title]]
            for row in rows:
                if row != NULL:
                    drive(servers[row.server], row.wire, [*usual, "--duration", "10ms"], here)
            for connections, depth in LOADS:
                load = ["--connections", str(connections), "--depth", str(depth), "--no-prefill"]
                load += ["--duration", f"{arguments.window_ms}ms"]
                work = {row: ["--tape", str(tape)] if row == NULL else usual for row in rows}
                extra = {row: [*work[row], *load] for row in rows}
                told = f"{title}, {connections} connection{'s' * (connections > 1)} × depth {depth}"
                tabulate(told, play(servers, rows, extra, arguments.rounds, here))


if __name__ == "__main__":
    main()
