"""Servers that a benchmark starts on one CPU, and the CPU time that an operation takes of them."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from cachemark.host import process

LOOPBACK = "127.0.0.1"
PATIENCE_S = 20.0


@dataclass(frozen=True)
class Server:
    """A running server, and its process."""

    name: str
    address: str
    pid: int
    tls: bool


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
def engine(name: str, arguments: list[str], cpu: int, *, tls: bool = False) -> Generator[Server]:
    """Start a server of the engine, which prints its addresses."""
    with started([process.binary_path(), *arguments], cpu) as child:
        assert child.stdout is not None
        announced = json.loads(child.stdout.readline())
        if announced.get("io", name) != name and name != "null":
            raise SystemExit(f"bench-server: no {name} on this kernel, but {announced['io']}")
        yield Server(name, announced["addresses"][0], child.pid, tls)


@contextmanager
def memcached(cpu: int, extra: list[str], *, tls: bool = False) -> Generator[Server]:
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port = free.getsockname()[1]
    user = ["-u", "root"] if os.geteuid() == 0 else []
    command = ["memcached", "-l", LOOPBACK, "-p", str(port), "-U", "0", "-t", "1", "-m", "64"]
    with started([*command, *user, *extra], cpu) as child:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection((LOOPBACK, port)).close()
                break
            except ConnectionRefusedError:
                if time.monotonic() > deadline or child.poll() is not None:
                    raise SystemExit("bench-server: memcached does not listen") from None
                time.sleep(0.01)
        yield Server("memcached", f"{LOOPBACK}:{port}", child.pid, tls)


def drive(server: Server, wire: str, extra: list[str], cpu: int) -> int:
    """Play a window; returns the number of successful operations."""
    command = [process.binary_path(), "drive", "--server", server.address, "--wire", wire]
    command += ["--json", "--quiet", "--warmup", "0s", "--timeout", "5s", *extra]
    command += ["--tls", "unverified"] if server.tls else []
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


def version(server: Server) -> str:
    host, port = server.address.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as line:
        line.sendall(b"version\r\n")
        return re.sub(rb"^VERSION |\r\n$", b"", line.recv(100)).decode()
