"""Child processes that are never left behind.

A child has a process group of its own, dies with its parent (`setpriv --pdeathsig`, where
util-linux has it), runs on the CPUs that it was given from its first instruction on, and keeps
the tail of its stderr.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import IO

from cachemark.model.errors import UsageError

ENGINE = "cachemark-engine"
_LOG_TAIL_BYTES = 16 * 1024
_LAST_WORDS_CHARACTERS = 200
_IF_OURS = 'test "$PPID" = "$0" && exec "$@"'
# Linux has at most 8192 CPUs, so four digits are enough.
_CPU_RANGE = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")
# The kernel's number for the precise clock among those of a process (see clock_getcpuclockid).
_CPUCLOCK_SCHED = 2


class Child:
    """A process that was started; `stop` ends its whole group and reaps it."""

    def __init__(self, popen: subprocess.Popen[bytes], log: IO[bytes]) -> None:
        self.popen = popen
        self._log = log
        self._last_log = ""

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Its process id, which is its group's too."""
        return self.popen.pid

    def exited(self) -> int | None:
        """Its exit status, or None while it runs; negative: the signal that killed it.

        Only `stop` reaps it: until then no other process group can get its id.
        """
        if self.popen.returncode is not None:
            return self.popen.returncode
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def wait(self, timeout_s: float) -> bool:
        """Wait until it has ended; false when it has not after `timeout_s` seconds."""
        if self.popen.returncode is not None:
            return True
        ended = os.pidfd_open(self.pid)
        try:
            poll = select.poll()
            poll.register(ended, select.POLLIN)
            return bool(poll.poll(timeout_s * 1e3))
        finally:
            os.close(ended)

    def log_tail(self) -> str:
        """The end of what it wrote on stderr; still there once it is stopped."""
        if self._log.closed:
            return self._last_log
        end = os.fstat(self._log.fileno()).st_size
        begin = max(0, end - _LOG_TAIL_BYTES)
        return os.pread(self._log.fileno(), end - begin, begin).decode("utf-8", "replace")

    def last_words(self) -> str:
        """Why it ended, as far as its stderr says: the line marked as the error, or the last.

        Empty where it wrote nothing. Parsers of command lines say the error first and end with a
        hint; interpreters end with the error; a JVM ends with where it was.
        """
        lines = [line.rstrip() for line in self.log_tail().splitlines() if line.strip()]
        told = [line for line in lines if not line[0].isspace()] or lines
        marked = [line for line in told if line.lower().startswith(("error:", "exception in"))]
        return (marked or told[-1:] or [""])[0].strip()[:_LAST_WORDS_CHARACTERS]

    def stop(self, grace_s: float = 3.0) -> None:
        """SIGTERM, `grace_s` seconds, then SIGKILL for the whole group; always reaped."""
        if self.popen.returncode is not None:
            return
        if grace_s > 0 and self.exited() is None:
            self._signal(signal.SIGTERM)
            self.wait(grace_s)
        self._signal(signal.SIGKILL)
        self.popen.wait()
        self._last_log = self.log_tail()
        self._log.close()
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe is not None:
                # Unsent bytes of a pipe whose reader is gone cannot be flushed any more.
                with contextlib.suppress(OSError):
                    pipe.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def start(
    command: list[str],
    *,
    cpus: str = "",
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> Child:
    """Start a program on a set of CPUs (`0-1,3`; empty: all). Raises OSError."""
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(f"{command[0]}: no such program")
    log = tempfile.TemporaryFile()  # noqa: SIM115 — it lives as long as the child
    with _affinity(cpus):
        popen = subprocess.Popen(
            [*_dies_with_parent(), *command],
            stdin=stdin,
            stdout=stdout,
            stderr=log,
            env={**os.environ, **env} if env else None,
            cwd=cwd,
            start_new_session=True,
        )
    return Child(popen, log)


def _dies_with_parent() -> list[str]:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return []
    # A parent that died before the signal was set has left the child to another one by now.
    return [setpriv, "--pdeathsig", "KILL", "--", "sh", "-c", _IF_OURS, str(os.getpid())]


@contextlib.contextmanager
def _affinity(cpus: str) -> Generator[None]:
    """Children inherit the starting thread's CPU set, so it is set round the start."""
    if not cpus:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, parse_cpus(cpus))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def parse_cpus(text: str) -> set[int]:
    """The CPUs of a set such as `0-1,3`. Raises UsageError."""
    cpus: set[int] = set()
    for part in text.split(","):
        found = _CPU_RANGE.fullmatch(part)
        low, high = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if low > high:
            raise UsageError(f"{text!r} is no set of CPUs", "write 0-1 or 0,2,3")
        cpus |= set(range(low, high + 1))
    return cpus


def cpu_ns(pid: int) -> int | None:
    """CPU time that a process has used, ended threads included; None when it is gone.

    Its CPU-time clock counts in ns; the ticks of /proc are 10 ms, and the scheduler's account of
    each thread goes with the thread.
    """
    try:
        return time.clock_gettime_ns((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError:
        return None


def binary_path() -> str:
    """Where cachemark-engine is: CACHEMARK_ENGINE, beside this Python, or PATH.

    Raises UsageError.
    """
    named = os.environ.get("CACHEMARK_ENGINE")
    if named:
        if shutil.which(named) is None:
            raise UsageError(f"CACHEMARK_ENGINE={named}: no such program", "unset it")
        return named
    places = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent)]
    found = shutil.which(ENGINE, path=os.pathsep.join([*places, os.environ.get("PATH", "")]))
    if found is None:
        raise UsageError(f"{ENGINE} is not installed", "run `make setup`")
    return found
