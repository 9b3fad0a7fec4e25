"""One worker process: sends requests to its stdin, reads answers from its stdout.

The steps of a worker's life, and what can fail at each (always a TrialError):
start (the program is missing) → hello (exits, prints garbage, is silent, is unsupported) →
prepare (cannot connect, lacks a capability) → run (exits, is silent, never ends) → bye.
"""

import os
import select
import selectors
import signal
import subprocess
import time
from contextlib import ExitStack

from cachemark.host import process
from cachemark.host.memory import guard
from cachemark.host.noise import Pauses
from cachemark.model import protocol
from cachemark.model.errors import TrialError, UnsupportedError, WorkerCrashedError
from cachemark.model.histogram import HistogramError, decode

# An answer has a few histograms of some kB each; a longer line is not an answer.
_LONGEST_LINE_BYTES = 16 * 2**20
_BYE_GRACE_S = 2.0
# How often to look at a late slice.
_LOOK_S = 0.02
_SLOW = "a long tape or a busy machine takes its time: an experiment may raise timing.ready_ms"
# The longest reason in a worker's own words, which reports repeat.
_MAX_REASON = 2000
# Signals that a process sends to itself. SIGKILL comes from others: the kernel, if memory is full.
_CRASHES = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


class Worker:
    """A worker process. Use as a context manager: it stops and reaps the process."""

    def __init__(self, command: list[str], *, cpus: str = "", name: str = "worker") -> None:
        self.name = name
        self.command = command
        self._buffer = bytearray()
        try:
            self._child = process.start(
                command, cpus=cpus, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        except OSError as error:
            raise UnsupportedError(f"{name}: {command[0]} cannot be started: {error}") from error
        self._watching = ExitStack()
        try:
            self._guarded = self._watching.enter_context(
                guard.watching(name, self._child.pid, self._child.kill)
            )
        except BaseException:
            self._child.stop(0)
            raise
        stdin, stdout = self._child.popen.stdin, self._child.popen.stdout
        if stdin is None or stdout is None:
            raise TrialError(f"{name}: no pipes to the worker")
        self._in, self.out = stdin.fileno(), stdout.fileno()
        os.set_blocking(self.out, False)
        # Register once: cachemark waits for an answer to `slice` thousands of times.
        self._poll = select.poll()
        self._poll.register(self.out, select.POLLIN)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self._watching.close()
        self._child.stop(0)

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._child.pid

    def hello(self, timeout_s: float) -> protocol.Ready:
        """Send `hello`. Raises TrialError, UnsupportedError."""
        self.send(protocol.Hello())
        ready = self._ready("hello", timeout_s)
        if ready.protocol != protocol.PROTOCOL_VERSION:
            raise UnsupportedError(
                f"{self.name}: speaks version {ready.protocol} of the worker protocol, this "
                f"cachemark speaks version {protocol.PROTOCOL_VERSION}",
                "build it anew: cachemark setup LANGUAGE; CHANGELOG.md says what changed",
            )
        return ready

    def prepare(self, request: protocol.Prepare, timeout_s: float) -> protocol.Ready:
        """Send `prepare`: it reads the tape and connects. Raises TrialError, UnsupportedError.

        From then on, a limit holds for the growth of the worker's memory, except for a cache in the
        process, which keeps all items of its work.
        """
        self.send(request)
        ready = self._ready("prepare", timeout_s)
        if request.servers:
            self._guarded.limit_growth()
        return ready

    def begin_slices(self, timeout_s: float) -> protocol.Ready:
        """Send `begin_slices`. Raises TrialError, UnsupportedError."""
        self.send(protocol.BeginSlices())
        return self._ready("begin_slices", timeout_s)

    def slice_done(self, due_s: float, timeout_s: float, pauses: Pauses) -> protocol.SliceDone:
        """Wait for the answer to a `slice` that was sent. Raises TrialError.

        After `due_s` it is late, and `pauses` looks for the cause.
        """
        answer = self.poll_answer() if self._wait(due_s, timeout_s, pauses) else None
        if answer is None:  # a part of the answer has arrived, or nothing
            answer = self.receive(timeout_s)
        if isinstance(answer, protocol.SliceDone):
            return answer
        raise self._unexpected("slice", answer, timeout_s)

    def _wait(self, due_s: float, timeout_s: float, pauses: Pauses) -> bool:
        """Wait for something to read; after `due_s`, tell `pauses` about each wait."""
        wanted_s, left_s = due_s, timeout_s
        while left_s > 0:
            began_ns = time.monotonic_ns()
            ready = self._poll.poll(wanted_s * 1e3)
            took_ns = time.monotonic_ns() - began_ns
            if not ready or took_ns > wanted_s * 1e9:
                pauses.slept(round(wanted_s * 1e9), took_ns)
            if ready:
                return True
            left_s -= took_ns / 1e9
            wanted_s = _LOOK_S
        return False

    def end_slices(self, timeout_s: float) -> protocol.Done:
        """Send `end_slices`; returns the sum of all slices. Raises TrialError."""
        self.send(protocol.EndSlices())
        answer = self.receive(timeout_s)
        if isinstance(answer, protocol.Done):
            return answer
        raise self._unexpected("end_slices", answer, timeout_s)

    def bye(self) -> None:
        """Ask the worker to exit, and wait shortly. The end of the context stops it in any case."""
        try:
            self.send(protocol.Bye())
            self._child.wait(_BYE_GRACE_S)
        except TrialError:
            return

    def kill(self) -> None:
        """Kill the process. The end of the context reaps it."""
        self._child.kill()

    def close_stdin(self) -> None:
        """Close the worker's stdin, as happens when its caller dies."""
        if self._child.popen.stdin is not None:
            self._child.popen.stdin.close()

    def log_tail(self) -> str:
        """The end of its stderr."""
        return self._child.log_tail()

    def send(self, message: protocol.Message) -> None:
        """Send one request. Raises TrialError if the worker has exited."""
        self.send_line(protocol.encode(message))

    def send_line(self, line: bytes) -> None:
        """Send one encoded request. Raises TrialError if the worker has exited."""
        try:
            while line:
                line = line[os.write(self._in, line) :]
        except OSError as error:
            raise self._exited_error() from error

    def receive(self, timeout_s: float) -> protocol.WorkerAnswer | None:
        """Wait for the next answer; None after `timeout_s`. Raises TrialError."""
        deadline = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector, self._child.end() as ended:
            selector.register(self.out, selectors.EVENT_READ)
            selector.register(ended, selectors.EVENT_READ)
            while (answer := self.poll_answer()) is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                if [key.fileobj for key, _ in selector.select(left)] == [ended]:
                    return self._last_answer()
        return answer

    def _last_answer(self) -> protocol.WorkerAnswer:
        """The answer that a worker sent before it exited. Raises TrialError if there is none."""
        answer = self.poll_answer()
        if answer is None:
            raise self._exited_error()
        return answer

    def poll_answer(self) -> protocol.WorkerAnswer | None:
        """An answer that is already available, else None; never waits. Raises TrialError."""
        while True:
            end = self._buffer.find(b"\n")
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                return self._decode(line)
            try:
                chunk = os.read(self.out, 65536)
            except BlockingIOError:
                return None
            if not chunk:
                raise self._exited_error()
            self._buffer += chunk
            if len(self._buffer) > _LONGEST_LINE_BYTES and b"\n" not in self._buffer:
                raise TrialError(
                    f"{self.name}: printed a line of more than 16 MiB, which is not an answer"
                )

    def _decode(self, line: bytes) -> protocol.WorkerAnswer:
        try:
            answer = protocol.decode_answer(line)
        except protocol.ProtocolError as error:
            raise TrialError(
                f"{self.name}: {error}",
                "a worker's stdout is for answers only; it must print its log on stderr",
            ) from error
        if isinstance(answer, protocol.Done) and (why := _invalid_done_reason(answer)):
            raise TrialError(f"{self.name}: {why}", "PROTOCOL.md defines `done`")
        return answer

    def _ready(self, what: str, timeout_s: float) -> protocol.Ready:
        answer = self.receive(timeout_s)
        if isinstance(answer, protocol.Ready):
            return answer
        raise self._unexpected(what, answer, timeout_s, _SLOW)

    def _unexpected(
        self, what: str, answer: protocol.WorkerAnswer | None, timeout_s: float, remedy: str = ""
    ) -> TrialError:
        if answer is None:
            return TrialError(f"{self.name}: no answer to {what} within {timeout_s:g} s", remedy)
        return self.error_for_answer(answer, what)

    def error_for_answer(self, answer: protocol.WorkerAnswer, what: str) -> TrialError:
        """The error for an unexpected answer."""
        if isinstance(answer, protocol.Unsupported):
            reason, remedy = answer.reason[:_MAX_REASON], answer.remedy[:_MAX_REASON]
            return UnsupportedError(f"{self.name}: {reason}", remedy)
        if isinstance(answer, protocol.Failure):
            text = answer.text[:_MAX_REASON]
            return TrialError(f"{self.name}: {what}: {answer.kind}: {text}")
        return TrialError(f"{self.name}: answered {what} with a {type(answer).__name__.lower()}")

    def _exited_error(self) -> TrialError:
        if self._guarded.reason:
            return TrialError(self._guarded.reason, self._guarded.remedy)
        self._child.wait(_BYE_GRACE_S)
        status = self._child.exited()
        if status is None:
            return TrialError(f"{self.name}: closed its output")
        how = f"exited with status {status}" if status >= 0 else f"was killed by signal {-status}"
        last = self._child.last_stderr_line()
        kind = WorkerCrashedError if -status in _CRASHES else TrialError
        return kind(f"{self.name}: {how}" + (f": {last}" if last else ""))


def _invalid_done_reason(done: protocol.Done) -> str:
    """Why a `done` is malformed in a way that its schema allows; empty if it is not."""
    timeline, sections, groups = done.timeline, done.sections, done.groups
    times = [blob for kind in done.operations.values() for blob in (kind.response, kind.service)]
    try:
        for blob in [
            done.send_lag,
            done.generator_lag,
            *times,
            *(sections.response if sections else []),
            groups.time if groups else None,
        ]:
            if blob:
                decode(blob)
    except HistogramError as error:
        return str(error)
    if timeline and len(timeline.ok) != len(timeline.response_ns):
        return "a timeline whose two lists differ in length"
    if sections and len(sections.ok) != len(sections.response):
        return "sections whose two lists differ in length"
    return ""
