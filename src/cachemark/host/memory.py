"""Keeps memory free on this machine: refuses to start too much, and ends processes that take more.

A client library may keep everything that a server sends, and a hostile server sends bytes for ever.
One thread looks at all guarded processes, and sleeps in between. It counts the private memory of a
process and its children. A server's replies cannot fill memory that processes share on purpose,
such as a store, so this does not count.
"""

import os
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cachemark.host.cpu_meter import family
from cachemark.host.files import field, kib_field, read
from cachemark.model.errors import UsageError
from cachemark.model.units import MIB, parse_memory

VARIABLE = "CACHEMARK_WORKER_MEMORY"
# Parts of the memory that is available at the first start. Two clients that misbehave at once can
# take all of it; then the smaller part, which must stay free, decides.
_LIMIT_PART = 1 / 2
_FREE_PART = 1 / 16
# No process can take memory faster than the kernel clears it.
_BYTES_PER_S = 4 * 2**30
_SHORTEST_S, _LONGEST_S = 0.1, 1.0
# A look at a process of forty threads costs half a millisecond.
_THOROUGH_EVERY = 10
_PAGE = os.sysconf("SC_PAGE_SIZE")
# Below this the kernel begins to reclaim and to swap, which disturbs every figure.
MIN_FREE_BYTES = 256 * 2**20
_REMEDY = "use fewer clients or servers at once, or --set design=trials"
_CGROUP = Path("sys/fs/cgroup")


def available_bytes(root: Path = Path("/")) -> int | None:
    """Free bytes for processes: the least of the machine and of this process's cgroup (v2)."""
    known = [
        left
        for left in (kib_field(read(root / "proc/meminfo"), "MemAvailable"), _cgroup_left(root))
        if left is not None
    ]
    return min(known, default=None)


def _cgroup_left(root: Path) -> int | None:
    limit, used = read(root / _CGROUP / "memory.max"), read(root / _CGROUP / "memory.current")
    if not (limit.isdecimal() and used.isdecimal()):
        return None
    # The kernel frees pages of files when it needs memory, so they count as free.
    facts = read(root / _CGROUP / "memory.stat")
    files = [field(facts, name, " ") for name in ("inactive_file", "active_file")]
    return int(limit) - int(used) + sum(int(of) for of in files if of.isdecimal())


def check_planned_memory(what: str, needed_bytes: int, root: Path = Path("/")) -> None:
    """Raise UsageError if `what` would leave too little memory."""
    left = available_bytes(root)
    if left is not None and left < needed_bytes + MIN_FREE_BYTES:
        raise UsageError(
            f"{what}: together they need about {needed_bytes // 2**20} MiB of memory, and "
            f"{max(0, left - MIN_FREE_BYTES) // 2**20} MiB are free",
            _REMEDY,
        )


def check_memory(what: str, root: Path = Path("/")) -> None:
    """Raise UsageError if `what` has left too little memory."""
    left = available_bytes(root)
    if left is not None and left < MIN_FREE_BYTES:
        raise UsageError(f"{what}: only {left // 2**20} MiB of memory are left", _REMEDY)


class Guarded:
    """A process under watch; `reason` says why the guard ended it, and is empty until then.

    While it reads its tape, until `limit_growth`, it has no limit of its own.
    """

    def __init__(self, name: str, pid: int, kill: Callable[[], None], changed: threading.Event):
        self.name, self.pid, self.kill = name, pid, kill
        self.reason = self.remedy = ""
        self.growth_from: int | None = None
        self.bytes = 0
        self._changed = changed
        self._counted_twice = 0

    def limit_growth(self) -> None:
        """From now on, end the process if it grows by more than the limit."""
        self._count(family(self.pid))
        self.growth_from = self.bytes
        self._changed.set()

    def end(self, reason: str, remedy: str) -> None:
        """Kill the process."""
        self.reason, self.remedy = f"{self.name}: {reason}", remedy
        self.kill()

    def look(self, thorough: bool) -> None:
        """Read the private memory of the process."""
        self._count(family(self.pid, of_main_threads=not thorough))

    def recount(self) -> None:
        """Count memory that forks share only once; this takes long."""
        pids = family(self.pid)
        self._counted_twice = 0
        self._count(pids)
        exact = sum(map(_proportional_bytes, pids))
        self._counted_twice = max(0, self.bytes - exact)
        self.bytes = min(self.bytes, exact)

    def _count(self, pids: Sequence[int]) -> None:
        self.bytes = max(0, sum(map(_private_bytes, pids)) - self._counted_twice)


class MemoryGuard:
    """Watches processes from the first one's start to the last one's end."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._guarded: list[Guarded] = []
        self._thread: threading.Thread | None = None
        self._limit_bytes = self._floor_bytes = self._looks = 0

    @contextmanager
    def watching(self, name: str, pid: int, kill: Callable[[], None]) -> Generator[Guarded]:
        """Watch a process until the end of the context; it must not be reaped before.

        Another thread calls `kill`. Raises UsageError for a limit that is no size.
        """
        one = Guarded(name, pid, kill, self._changed)
        with self._lock:
            if not self._guarded:
                self._set_limits()
            self._guarded.append(one)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="memory", daemon=True)
                self._thread.start()
        try:
            yield one
        finally:
            with self._lock:
                self._guarded.remove(one)
            self._changed.set()

    def _set_limits(self) -> None:
        available = available_bytes(self._root)
        known = sys.maxsize if available is None else available
        declared = os.environ.get(VARIABLE, "")
        self._limit_bytes = (
            parse_memory(declared, VARIABLE) if declared else int(known * _LIMIT_PART)
        )
        self._floor_bytes = max(MIN_FREE_BYTES, int(known * _FREE_PART))

    def _run(self) -> None:
        while True:
            self._changed.clear()
            with self._lock:
                if not self._guarded:
                    self._thread = None
                    return
            room = self.look()
            self._changed.wait(min(_LONGEST_S, max(_SHORTEST_S, room / _BYTES_PER_S)))

    def look(self) -> int:
        """End processes that are beyond a limit; returns the bytes until the next one would be."""
        with self._lock:
            return self._look()

    def _look(self) -> int:
        self._looks += 1
        alive = [one for one in self._guarded if not one.reason]
        for one in alive:
            one.look(thorough=self._looks % _THOROUGH_EVERY == 0)
        rooms = [self._check_growth(one) for one in alive]
        available = available_bytes(self._root)
        if available is not None:
            rooms.append(available - self._floor_bytes)
            if available < self._floor_bytes:
                self._end_largest(alive, available)
        return min(rooms, default=0)

    def _check_growth(self, one: Guarded) -> int:
        if one.growth_from is None:
            return self._limit_bytes
        if one.bytes - one.growth_from > self._limit_bytes:
            one.recount()
        grown = one.bytes - one.growth_from
        if grown > self._limit_bytes:
            one.end(
                f"it was ended because its memory grew by {grown // MIB:,} MiB, and the limit is "
                f"{self._limit_bytes // MIB:,} MiB",
                f"if the server's replies do end, set {VARIABLE} to a higher limit, such as 16g",
            )
        return self._limit_bytes - grown

    def _end_largest(self, alive: Sequence[Guarded], available: int) -> None:
        """End the largest process, unless processes outside have taken the memory."""
        largest = max(alive, key=lambda one: one.bytes, default=None)
        if largest is None or largest.reason or largest.bytes < self._floor_bytes:
            return
        largest.end(
            f"it was ended because it had {largest.bytes // MIB:,} MiB of memory, and only "
            f"{available // MIB:,} MiB were left on this machine",
            "use a server whose replies end, smaller data, or fewer clients at once",
        )


def _private_bytes(pid: int) -> int:
    """Resident memory of a process without files and shared memory; 0 if it is gone."""
    try:
        file = os.open(f"/proc/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        words = os.read(file, 256).split()
    except OSError:
        return 0
    finally:
        os.close(file)
    return (int(words[1]) - int(words[2])) * _PAGE


def _proportional_bytes(pid: int) -> int:
    """The same, with the pages that several processes share divided among them."""
    counted_once = kib_field(read(Path(f"/proc/{pid}/smaps_rollup")), "Pss_Anon")
    return _private_bytes(pid) if counted_once is None else counted_once


guard = MemoryGuard()
