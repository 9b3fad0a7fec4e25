"""Servers that a benchmark starts on one CPU, and the CPU time that an operation takes of them."""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

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
    before = work_ns(server)
    ops = drive(server, wire, extra, cpu)
    return (work_ns(server) - before) / ops / 1000


def work_ns(server: Server) -> int:
    """CPU time of a server, without polls that found nothing if it polls: it tells both at once."""
    if server.name != "busy":
        return cpu_ns(server.pid)
    stats = dict(re.findall(r"STAT (\w+) ([\d.]+)\r\n", ask(server, b"stats\r\n", b"END\r\n")))
    used_s = float(stats["rusage_user"]) + float(stats["rusage_system"])
    return int(used_s * 1e9) - int(stats["idle_polls_us"]) * 1000


def version(server: Server) -> str:
    return ask(server, b"version\r\n", b"\r\n").split()[1]


def ask(server: Server, request: bytes, end: bytes) -> str:
    """The reply to a request, which ends in this."""
    host, port = server.address.rsplit(":", 1)
    said = b""
    with ExitStack() as stack:
        line = stack.enter_context(socket.create_connection((host, int(port)), PATIENCE_S))
        if server.tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            line = stack.enter_context(context.wrap_socket(line))
        line.sendall(request)
        while not said.endswith(end):
            said += line.recv(65_536) or end
    return said.decode()


def resident_kib(pid: int) -> int:
    """Memory of a process that is resident."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0])
