"""`make bench-server`: what an operation costs a server in CPU time, as ratios within one run.

Every server has one thread on one CPU, the generator (`cachemark-engine drive`) another CPU. CPU
time is the scheduler's own (a process's CPU clock), taken before and after each window and
divided by the operations that succeeded in it. Servers take turns, round by round, and the median
of the rounds stands in the table: what else runs on the machine meets all of them. The null
responder answers each line with the same bytes and reads none of them: the kernel's floor.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from cachemark import process

SHAPE = ["--key-length", "20", "--size", "100"]
MIXES = {"GET": "get=1", "SET": "set=1", "90:10": "get=9,set=1"}
LOADS = {"1x1": (1, 1), "8x32": (8, 32), "1x100": (1, 100)}
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


ROWS = [
    Row("null", "text"),
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
def started(command: list[str], cpu: int) -> Iterator[subprocess.Popen[str]]:
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
def engine(name: str, arguments: list[str], cpu: int) -> Iterator[Server]:
    """A server of the engine's own, which says where it listens."""
    with started([process.binary_path(), *arguments], cpu) as child:
        assert child.stdout is not None
        said = json.loads(child.stdout.readline())
        if said.get("io", name) != name and name != "null":
            raise SystemExit(f"bench-server: {name} is not to be had here: it is {said['io']}")
        yield Server(name, said["addresses"][0], child.pid)


@contextmanager
def memcached(cpu: int) -> Iterator[Server]:
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


def tabulate(title: str, costs: dict[str, dict[str, float]]) -> None:
    print(f"\n{title}: us of server CPU an operation (x null, x memcached's best)")
    print(f"{'':18}" + "".join(f"{load:>24}" for load in LOADS))
    for label in costs:
        cells: list[str] = []
        for load in LOADS:
            cost = costs[label][load]
            null = costs.get("null text", {}).get(load)
            best = min(costs[row][load] for row in costs if row.startswith("memcached"))
            over = f"{cost / null:.2f}" if null else "-"
            cells.append(f"{cost:>10.2f} ({over:>5},{cost / best:>5.2f})")
        print(f"{label:18}" + "".join(cells))


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
            rows = [row for row in ROWS if row.server != "null" or title == "GET"]
            tapes = {"null": ["--tape", str(tape), "--no-prefill"]}
            usual = [*SHAPE, "--keys", "10k", "--mix", MIXES[title]]
            costs: dict[str, dict[str, list[float]]] = {}
            for row in rows:
                if row.server != "null":
                    drive(servers[row.server], row.wire, [*usual, "--duration", "10ms"], here)
            for _ in range(arguments.rounds):
                for load, (connections, depth) in LOADS.items():
                    for row in rows:
                        extra = tapes.get(row.server, [*usual, "--no-prefill"])
                        extra = [*extra, "--connections", str(connections), "--depth", str(depth)]
                        extra += ["--duration", f"{arguments.window_ms}ms"]
                        cost = measure(servers[row.server], row.wire, extra, here)
                        costs.setdefault(row.label, {}).setdefault(load, []).append(cost)
            medians = {
                label: {load: statistics.median(cells) for load, cells in loads.items()}
                for label, loads in costs.items()
            }
            tabulate(title, medians)


if __name__ == "__main__":
    main()
