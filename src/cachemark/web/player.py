"""Plays the runs that pages start: child processes, one at a time.

Requests ask for a run in threads of the server, which have the lowest priority. `play` starts and
stops it in the main thread, from which it inherits the normal priority. Linux kills such a child
when the thread that started it ends; the main thread lives as long as the server.
"""

import contextlib
import os
import queue
import select
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import msgspec

from cachemark.host import process
from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import UsageError
from cachemark.model.events import Started
from cachemark.runs.events.log import WEB_PID, EventReader, process_start
from cachemark.runs.storage.store import run_names
from cachemark.web.verbs import error_of, verb_command

# A run ends its servers and workers before it ends itself.
_GRACE_S = 30.0
# The time until a run has its name: it writes its tapes first.
_MAX_START_S = 600.0
_LOOK_S = 0.2
_MANY_BYTES = 65536


class CommandedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run to play: the options of `cachemark run`.

    `toml` is the text of an experiment, or empty. `run` is the run to resume; empty: a new one.
    """

    options: list[str]
    toml: str = ""
    run: str = ""


class _Playing:
    """A job, from its request to the end of its process."""

    def __init__(self, job: CommandedRun) -> None:
        self.job = job
        self.run = ""
        self.identity: tuple[int, str] = (0, "")
        self.stop_wanted = False
        self.ended = threading.Event()
        self.error = UsageError("the run was not started: this server is about to end")


class RunPlayer:
    """Plays one job at a time, on its own CPUs. `released` is called at the end of each."""

    def __init__(self, root: Path, cpus: str, released: Callable[[], None]) -> None:
        self._root, self._cpus, self._released = root, cpus, released
        self._asked: queue.SimpleQueue[_Playing] = queue.SimpleQueue()
        self._playing: _Playing | None = None
        self._closing = False
        # A byte in this pipe wakes the main thread.
        self._wake, self._waker = os.pipe()
        for end in (self._wake, self._waker):
            os.set_blocking(end, False)
            weakref.finalize(self, os.close, end)

    @property
    def run(self) -> str:
        """The name of the current run; empty without one."""
        return self._playing.run if self._playing else ""

    @property
    def ends_within_s(self) -> float:
        """The longest time until a stopped run has ended; 0 if no run was stopped."""
        playing = self._playing
        return _GRACE_S if playing is not None and playing.stop_wanted else 0

    def start(self, job: CommandedRun) -> str:
        """Start a job, and wait until a page can show its run: the run's name. Raises UsageError.

        The caller must have taken the machine for it.
        """
        known = frozenset() if job.run else frozenset(run_names(self._root))
        playing = _Playing(job)
        self._playing = playing
        self._asked.put(playing)
        self._notify()
        if self._closing:
            self._refuse_waiting()
        return self._shown(playing, known)

    def _shown(self, playing: _Playing, known: frozenset[str]) -> str:
        readers: dict[str, EventReader] = {}
        deadline = time.monotonic() + _MAX_START_S
        while time.monotonic() < deadline:
            ended = playing.ended.wait(_LOOK_S)
            new = [playing.job.run] if playing.job.run else set(run_names(self._root)) - known
            for name in new:
                reader = readers.setdefault(name, EventReader(self._root / name))
                if _began(reader, playing.identity):
                    playing.run = name
                    return name
            if ended:
                raise playing.error
        raise UsageError("the run has not begun yet", "look at the list of runs in a minute")

    def stop(self, run: str) -> None:
        """Interrupt the run as Ctrl-C does. Raises UsageError if this player does not play it."""
        playing = self._playing
        if playing is None or playing.run != run:
            raise UsageError(
                f"{run} was not started from these pages, or has ended",
                "press Ctrl-C in the terminal in which it was started",
            )
        playing.stop_wanted = True
        self._notify()

    def play(self) -> None:
        """Play each job, until the player is closed. For the main thread."""
        while not self._closing:
            _wait_for(self._wake)
            self._awake()
            with contextlib.suppress(queue.Empty):
                while not self._closing:
                    self._play(self._asked.get_nowait())

    def close(self) -> None:
        """Let `play` end, and refuse all waiting jobs."""
        self._closing = True
        self._notify()
        self._refuse_waiting()

    def _refuse_waiting(self) -> None:
        # `close` and a late `start` may both be here: only one of them takes each job.
        with contextlib.suppress(queue.Empty):
            while True:
                self._finish(self._asked.get_nowait())

    def _notify(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full: it wakes anyway
            os.write(self._waker, b"!")

    def _awake(self) -> None:
        """Empty the pipe that woke this thread, so that the next byte wakes it again."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, _MANY_BYTES)

    def _play(self, playing: _Playing) -> None:
        try:
            with temporary_folder() as folder:
                child = process.start(
                    _command(playing.job, folder, self._root),
                    cpus=self._cpus,
                    env={WEB_PID: str(os.getpid())},
                )
                try:
                    playing.identity = child.pid, process_start(child.pid)
                    self._watch(child, playing)
                finally:
                    # SIGTERM ends a run as Ctrl-C does. SIGINT may not: in the background of a
                    # script, the server ignores it, and children inherit this.
                    child.stop(_GRACE_S)
                    playing.error = error_of(child.log_tail(), child.popen.returncode)
        except OSError as error:
            playing.error = UsageError(f"the run cannot be started: {error}")
        finally:
            self._finish(playing)

    def _finish(self, playing: _Playing) -> None:
        self._playing = None
        self._released()
        playing.ended.set()

    def _watch(self, child: process.Child, playing: _Playing) -> None:
        with child.end() as ended:
            while not playing.stop_wanted and not self._closing:
                if ended in _wait_for(ended, self._wake):
                    return
                self._awake()


def _wait_for(*descriptors: int) -> list[int]:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll()]


def _command(job: CommandedRun, folder: Path, root: Path) -> list[str]:
    return verb_command("run", f"--runs={root}", *write_experiment(job.toml, folder), *job.options)


def write_experiment(toml: str, folder: Path) -> list[str]:
    """Write the typed experiment to a file; the file as an argument, or no argument."""
    if not toml:
        return []
    path = folder / "experiment.toml"
    path.write_text(toml, encoding="utf-8")
    return [str(path)]


def _began(reader: EventReader, identity: tuple[int, str]) -> bool:
    """Whether a process has begun the run of these events."""
    starts = [line.event for line in reader.new_lines() if isinstance(line.event, Started)]
    return any((one.pid, one.process_start) == identity for one in starts)
