"""Usage of the threads of a process: switches, time on a CPU, time without one, page faults."""

import re
import time
from collections.abc import Generator
from contextlib import contextmanager
from operator import sub
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

from cachemark.host.cpu_meter import family
from cachemark.host.files import read

_SWITCHES = re.compile(r"^(non)?voluntary_ctxt_switches:\t(\d+)$", re.MULTILINE)
# The interval of readings: the counts of a thread vanish when it ends.
_LOOK_S = 0.01


class ThreadUsage(NamedTuple):
    """Counts of one thread since its start; `queued_ns` is the time that it waited for a CPU."""

    switches: int = 0
    preemptions: int = 0
    run_ns: int = 0
    queued_ns: int = 0


class FamilyUsage:
    """The usage of a process and its descendants, with threads that have ended meanwhile."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before = _threads(pid)
        self._latest = dict(self._before)
        self._faults: list[tuple[int, int]] = []

    def look(self) -> None:
        """Read all threads again."""
        self._latest |= _threads(self._pid)
        self._faults.append((time.monotonic_ns(), _faults(self._pid)))

    def faults_of_last(self, ns: int) -> float | None:
        """The page faults of a play of `ns`, after which the last reading was; None: not known.

        They are the rate well inside of it: before and after it a worker gets and returns memory.
        """
        end_ns, _ = self._faults[-1]
        inside = [each for each in self._faults if 0.1 < (end_ns - each[0]) / max(1, ns) < 0.9]
        (early_ns, before), (late_ns, after) = (inside[0], inside[-1]) if inside else [(0, 0)] * 2
        length_ns = late_ns - early_ns
        return (after - before) * ns / length_ns if length_ns > ns / 2 else None

    def threads(self) -> list[ThreadUsage]:
        """The usage of each thread from the start to its last reading."""
        nothing = ThreadUsage()
        return [
            ThreadUsage(*map(sub, usage, self._before.get(thread, nothing)))
            for thread, usage in self._latest.items()
        ]


@contextmanager
def watched(pid: int) -> Generator[FamilyUsage]:
    """Watch a process and its descendants; the usage is complete after the context."""
    usage, ended = FamilyUsage(pid), Event()

    def watch() -> None:
        while not ended.wait(_LOOK_S):
            usage.look()

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield usage
    finally:
        ended.set()
        watcher.join()
    usage.look()


def _threads(pid: int) -> dict[str, ThreadUsage]:
    found: dict[str, ThreadUsage] = {}
    for each in family(pid):
        for task in Path(f"/proc/{each}/task").glob("*"):
            switches = {
                kind: int(count) for kind, count in _SWITCHES.findall(read(task / "status"))
            }
            scheduled = read(task / "schedstat").split()
            if switches and len(scheduled) == 3:
                found[task.name] = ThreadUsage(
                    switches=switches.get("", 0),
                    preemptions=switches.get("non", 0),
                    run_ns=int(scheduled[0]),
                    queued_ns=int(scheduled[1]),
                )
    return found


def _faults(pid: int) -> int:
    """Page faults, with ended threads."""
    # The name of the program, in brackets, can have spaces.
    stats = [read(Path(f"/proc/{each}/stat")).rpartition(")")[2].split() for each in family(pid)]
    return sum(int(fields[7]) + int(fields[9]) for fields in stats if fields)
