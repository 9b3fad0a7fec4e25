"""The file of events: the run appends, and a reader goes on after its last reading."""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from cachemark.host.files import open_regular, open_to_append, read
from cachemark.host.process import cpu_ns
from cachemark.model import events
from cachemark.model.outcome import Outcome

# A field of /proc/PID/stat, counted from the one after the name.
_START_FIELD = 19
# A run of hours stays far below. Beyond it, only the beginning and the end of processes are kept.
MAX_BYTES = 16 * 2**20


class EventLog:
    """The writer. It never fails: a run goes on if its events cannot be written."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / events.EVENTS_FILE
        reader = EventReader(folder)
        lines = reader.new_lines()
        self._id = lines[-1].id if lines else 0
        self._bytes = reader.length
        with contextlib.suppress(OSError):
            if os.path.lexists(self._path):
                with open_to_append(self._path) as file:
                    file.truncate(reader.length)  # a killed process left a part of a line

    def write(self, event: events.Event) -> None:
        """Append an event."""
        if self._bytes > MAX_BYTES and not isinstance(event, events.Started | events.Ended):
            return
        line = events.to_line(
            events.EventLine(id=self._id + 1, at=round(time.time(), 3), event=event)
        )
        if line is None:
            return
        with contextlib.suppress(OSError), open_to_append(self._path) as file:
            file.write(line)
            self._id += 1
            self._bytes += len(line)


class EventReader:
    """The reader of a run's events."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / events.EVENTS_FILE
        self.length = 0

    def new_lines(self) -> list[events.EventLine]:
        """The complete lines since the last reading."""
        try:
            with open_regular(self._path) as file:
                file.seek(self.length)
                text = file.read(4 * MAX_BYTES)
        except OSError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self.length += len(whole)
        return [line for part in whole.splitlines() if (line := events.from_line(part)) is not None]


def process_start(pid: int) -> str:
    """When a process began, in ticks since the machine did; empty if there is no such process."""
    fields = read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return fields[_START_FIELD] if len(fields) > _START_FIELD and fields[0] != "Z" else ""


def own_identity() -> tuple[int, str]:
    """The number of this process, and when it began."""
    return os.getpid(), process_start(os.getpid())


# The environment variable with the process id of the server that belongs to a run.
WEB_PID = "CACHEMARK_WEB_PID"


def with_web_time(play: Callable[[], list[Outcome]]) -> list[Outcome]:
    """Play, and note in each outcome the CPU time of the pages' server, if there is one."""
    pid = os.environ.get(WEB_PID, "")
    if not pid.isdecimal():
        return play()
    before = cpu_ns(int(pid))
    outcomes = play()
    after = cpu_ns(int(pid))
    if before is None or after is None:
        return outcomes
    return [msgspec.structs.replace(outcome, web_cpu_ns=after - before) for outcome in outcomes]
