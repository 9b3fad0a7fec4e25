"""System calls of a program that cachemark started, by kind, as strace logs them.

strace slows each call down by a hundred microseconds and more, so only counts are taken from it.
The instants in its log say which calls belong to a phase, and nothing else.
"""

import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path

import msgspec

from cachemark.host import process
from cachemark.host.files import field, read
from cachemark.model.errors import TrialError

PROGRAM = "strace"
_OPTIONS = ("-f", "-y", "-qq", "-s", "0", "-ttt", "-o")
_ATTACH_S, _DETACH_S, _LOOK_S = 30.0, 30.0, 0.005

_ENTRY = re.compile(r"^(\d+) +(\d+\.\d+) (\w+)\((?:(\d+)<([^>]*)>)?")
_RESUMED = re.compile(r"^(\d+) +\d+\.\d+ <\.\.\. (\w+) resumed>")
_STANDARD_STREAMS = ("0", "1", "2")
# Threads that compile or collect garbage never make these calls.
_OF_CONNECTIONS = frozenset({"sends", "recvs", "polls", "wakes"})


class SystemCalls(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of system calls, and those on sockets and pipes, and polls, by thread id.

    `sends` and `recvs` are writes to sockets and reads from them, by whatever call; `empty_recvs`
    are the `recvs` that found nothing. `wakes` are reads and writes of pipes and eventfds.
    `options` are calls that set or read options of sockets. A sleep is one of `others`: schedulers
    of languages sleep by the clock, not by the operation. Calls on standard input, output and
    error are left out: over them a worker speaks with cachemark.
    """

    counts: Counter[str]
    by_thread: dict[str, int] = {}


@cache
def _figures() -> dict[str, dict[str, str]]:
    text = resources.files("cachemark.host").joinpath("system_calls.toml").read_bytes()
    groups = msgspec.toml.decode(text, type=dict[str, list[tuple[list[str], dict[str, str]]]])
    return {call: figures for calls, figures in groups["group"] for call in calls}


@cache
def missing_reason() -> str:
    """Why system calls cannot be counted here, with the remedy; empty if they can."""
    if not shutil.which(PROGRAM):
        return f"{PROGRAM} is not installed: apt-get install {PROGRAM}"
    tried = subprocess.run(
        [PROGRAM, "-o", "/dev/null", "true"], capture_output=True, text=True, check=False
    )
    if tried.returncode == 0:
        return ""
    said = (tried.stderr.strip().splitlines() or [f"{PROGRAM} failed"])[0]
    return f"{said}: the kernel or the container refuses ptrace"


def traced(command: list[str], log: Path) -> list[str]:
    """The command that runs a program, with its threads and children, and logs its system calls."""
    return [PROGRAM, *_OPTIONS, str(log), "--", *command]


@contextmanager
def attached(pids: Sequence[int], log: Path) -> Generator[None]:
    """Log the system calls of all threads of processes that run. Raises TrialError."""
    command = [PROGRAM, *_OPTIONS, str(log), *(f"--attach={pid}" for pid in pids)]
    with process.start(command) as tracer:
        deadline = time.monotonic() + _ATTACH_S
        while not all(_is_traced(pid) for pid in pids):
            if tracer.wait(_LOOK_S) or time.monotonic() > deadline:
                remedy = "be root, or set kernel.yama.ptrace_scope = 0"
                raise TrialError(f"{PROGRAM} cannot attach to the server", remedy)
        yield
        tracer.stop(_DETACH_S)


def _is_traced(pid: int) -> bool:
    tasks = Path(f"/proc/{pid}/task").glob("*/status")
    return all(field(read(task), "TracerPid", ":") not in ("0", "") for task in tasks)


def calls_between(log: Path, begin_unix_s: float, end_unix_s: float) -> SystemCalls:
    """The system calls between two instants, from the first request to the last reply."""
    counts, by_thread = Counter[str](), Counter[str]()
    # Since the last of both. Threads begin and end a run with more calls on a busy machine.
    since = Counter[str]()
    # The kind of the unfinished call of each thread.
    unfinished: dict[str, str] = {}
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if resumed := _RESUMED.match(line):
                kind = unfinished.pop(resumed[1], "")
            elif (entry := _ENTRY.match(line)) and begin_unix_s <= float(entry[2]) < end_unix_s:
                if entry[4] in _STANDARD_STREAMS:
                    continue
                kind = _kind(entry[3], entry[5] or "")
                since[kind] += 1
                if kind in ("sends", "recvs"):
                    counts.update(since if counts else [kind])
                    since.clear()
                by_thread[entry[1]] += kind in _OF_CONNECTIONS
                if line.endswith("<unfinished ...>\n"):
                    unfinished[entry[1]] = kind
            else:
                continue
            if kind == "recvs" and "= -1 EAGAIN" in line:
                counts["empty_recvs"] += 1
    return SystemCalls(counts=counts or since, by_thread=dict(+by_thread))


def _kind(name: str, target: str) -> str:
    figures = _figures().get(name, {})
    on = "socket" if target.startswith(("socket:", "TCP", "UNIX")) else ""
    if target.startswith("/") and not target.startswith("/dev/"):
        on = "file"
    return figures.get(on, figures.get("else", "others"))
