"""Child processes that always end with this process.

A child has its own process group and is killed if this process dies (`setpriv --pdeathsig`, if
installed). It runs on its CPU set from its first instruction on. The end of its stderr is kept.
"""

import contextlib
import itertools
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Generator, Sequence
from pathlib import Path

from cachemark.host import descendants
from cachemark.model.errors import UsageError

TAIL_BYTES = 16 * 1024
_CHUNK_BYTES = 64 * 1024
# If a child writes without end, cachemark reads 6 MB a second: the child waits without a CPU.
_FREE_BYTES = 2**20
_PAUSE_S = 0.01
ENGINE = "cachemark-engine"
ENGINE_REMEDY = f"in a checkout `make setup`; else `pip install --upgrade cachemark {ENGINE}`"
# The source of children, CPU times and noise. Only Linux has it.
_PROC = Path("/proc/self")
_STDERR_LINE_MAX_CHARACTERS = 200
_IF_PARENT_LIVES = 'test "$PPID" = "$0" && exec "$@"'
# Linux has at most 8192 CPUs, so four digits are enough.
_CPU_RANGE = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")
# Selects the precise CPU clock of a process (see clock_getcpuclockid).
_CPUCLOCK_SCHED = 2
_numbers = itertools.count()


class Child:
    """A child process. `stop` ends its whole process group and reaps it."""

    def __init__(self, popen: subprocess.Popen[bytes], log: "StderrTail") -> None:
        self.popen = popen
        self._log = log

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its process group."""
        return self.popen.pid

    def exited(self) -> int | None:
        """The exit status; None while the process runs; negative: the signal that killed it.

        Does not reap the process (only `stop` does), so its id cannot be reused meanwhile.
        """
        if self.popen.returncode is not None:
            return self.popen.returncode
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end of the process; False if it still runs after `timeout_s` seconds."""
        if self.popen.returncode is not None:
            return True
        with self.end() as ended:
            poll = select.poll()
            poll.register(ended, select.POLLIN)
            return bool(poll.poll(timeout_s * 1e3))

    @contextlib.contextmanager
    def end(self) -> Generator[int]:
        """A file descriptor that is readable once the process has ended, before it is reaped."""
        ended = os.pidfd_open(self.pid)
        try:
            yield ended
        finally:
            os.close(ended)

    def log_tail(self) -> str:
        """The end of its stderr. Still available after `stop`."""
        return self._log.text()

    def last_stderr_line(self) -> str:
        """The line of stderr that most likely says why the process ended; empty if there is none.

        This is the first line that begins with `error:` or `exception in` (programs that print a
        hint or a stack trace after it), else the last line that is not indented.
        """
        lines = [line.rstrip() for line in self.log_tail().splitlines() if line.strip()]
        unindented = [line for line in lines if not line[0].isspace()] or lines
        marked = [
            line for line in unindented if line.lower().startswith(("error:", "exception in"))
        ]
        return (marked or unindented[-1:] or [""])[0].strip()[:_STDERR_LINE_MAX_CHARACTERS]

    def stop(self, grace_s: float = 3.0) -> None:
        """Send SIGTERM, wait `grace_s` seconds, then SIGKILL all descendants, and reap them."""
        if self.popen.returncode is not None:
            return
        if grace_s > 0 and self.exited() is None:
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)  # a stopped process would not see it
            self.wait(grace_s)
        self._signal(signal.SIGKILL)
        self.popen.wait()
        descendants.kill_all(self.pid)
        self._log.close()
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe is not None:
                # Closing flushes, which fails if the reader is gone.
                with contextlib.suppress(OSError):
                    pipe.close()

    def kill(self) -> None:
        """Send SIGKILL to the process group; `stop` reaps it."""
        if self.popen.returncode is None:
            self._signal(signal.SIGKILL)

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
    pass_fds: Sequence[int] = (),
) -> Child:
    """Start a program on a set of CPUs (`0-1,3`; empty: all), with `pass_fds` open.

    Raises OSError.
    """
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(f"{command[0]}: no such program")
    descendants.adopt()
    log, mark = StderrTail(), f"{os.getpid()}-{next(_numbers)}"
    try:
        with _affinity(cpus), descendants.starting() as note:
            popen = subprocess.Popen(
                [*_dies_with_parent(), *command],
                stdin=stdin,
                stdout=stdout,
                stderr=log.writer,
                env={**os.environ, **(env or {}), **descendants.mark(mark)},
                cwd=cwd,
                pass_fds=pass_fds,
                start_new_session=True,
            )
            note(popen.pid, mark)
    except BaseException:
        log.cancel()
        raise
    log.begin()
    return Child(popen, log)


def _dies_with_parent() -> list[str]:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return []
    # If the parent died before pdeathsig was set, the child has another parent: do not start.
    return [setpriv, "--pdeathsig", "KILL", "--", "sh", "-c", _IF_PARENT_LIVES, str(os.getpid())]


@contextlib.contextmanager
def _affinity(cpus: str) -> Generator[None]:
    """Set this thread's CPU set for the time of the start: the child inherits it."""
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
        match = _CPU_RANGE.fullmatch(part)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if low > high:
            raise UsageError(f"{text!r} is not a set of CPUs", "write 0-1 or 0,2,3")
        cpus |= set(range(low, high + 1))
    return cpus


def cpu_ns(pid: int) -> int | None:
    """CPU time of a process in ns, including threads that have ended; None if it is gone.

    This uses the CPU-time clock of the process, because /proc/PID/stat counts in ticks of 10 ms
    and the scheduler's statistics of a thread vanish with the thread.
    """
    try:
        return time.clock_gettime_ns(cpu_clock(pid))
    except OSError:
        return None


def cpu_clock(pid: int) -> int:
    """The number of a process's CPU-time clock, for clock_gettime."""
    return (~pid << 3) | _CPUCLOCK_SCHED


def require_linux() -> None:
    """Raise UsageError on another system."""
    if not _PROC.exists():
        raise UsageError(
            "measurements need Linux: there is no /proc here",
            "stored runs can be read here: report, compare, history, explain, web, export, import",
        )


def binary_path() -> str:
    """The path of cachemark-engine: $CACHEMARK_ENGINE, where pip installs programs, or on PATH.

    Raises UsageError if there is none, and on a system other than Linux.
    """
    require_linux()
    named = os.environ.get("CACHEMARK_ENGINE")
    if named:
        if shutil.which(named) is None:
            raise UsageError(f"CACHEMARK_ENGINE={named}: no such program", "unset it")
        return named
    of_the_user = sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))
    places = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent), of_the_user]
    path = shutil.which(ENGINE, path=os.pathsep.join([*places, os.environ.get("PATH", "")]))
    if path is None:
        raise UsageError(f"{ENGINE} is not installed", ENGINE_REMEDY)
    return path


class StderrTail:
    """A thread that reads a pipe until all writers are gone or it is closed."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._stop_reader, self._stop_writer = os.pipe()
        self._tail = b""
        self._seen = 0
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read_all, daemon=True)

    def begin(self) -> None:
        """Read from now on. The child has the other end, so this process closes its own."""
        os.close(self.writer)
        self._thread.start()

    def cancel(self) -> None:
        """Close everything, since the child did not start."""
        for end in (self._reader, self.writer, self._stop_reader, self._stop_writer):
            os.close(end)

    def text(self) -> str:
        """The end of the text until now."""
        with self._lock:
            while not self._closed and self._read_some():
                if self._seen > _FREE_BYTES:
                    break
            return self._tail.decode("utf-8", "replace")

    def close(self) -> None:
        """Stop reading. `text` still returns the end of the text."""
        self.text()
        os.close(self._stop_writer)
        self._thread.join()
        with self._lock:
            self._closed = True
            os.close(self._reader)
            os.close(self._stop_reader)

    def _read_all(self) -> None:
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        poll.register(self._stop_reader, 0)
        while True:
            ready = dict(poll.poll())
            if self._stop_reader in ready:
                return
            with self._lock:
                if not self._read_some() and ready[self._reader] & select.POLLHUP:
                    return
            if self._seen > _FREE_BYTES:
                time.sleep(_PAUSE_S)

    def _read_some(self) -> bool:
        """Read at most a chunk; False if nothing is there. Needs the lock."""
        try:
            chunk = os.read(self._reader, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        self._seen += len(chunk)
        self._tail = (self._tail + chunk)[-TAIL_BYTES:]
        return bool(chunk)
