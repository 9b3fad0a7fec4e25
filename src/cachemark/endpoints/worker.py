"""One worker on one byte stream: requests out, answers in.

The life of a worker, and what can go wrong at each step (all of it TrialError):
start (the program is missing) → hello (exits, prints garbage, says nothing, is unsupported) →
prepare (cannot connect, cannot do that) → run (dies, goes silent, never ends) → bye.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time

from cachemark.host import process
from cachemark.model.errors import TrialError, UnsupportedError
from cachemark.model.histogram import HistogramError, decode
from cachemark.model.protocol import (
    Answer,
    Bye,
    Done,
    Failure,
    Hello,
    Message,
    Prepare,
    ProtocolError,
    Ready,
    Unsupported,
    decode_answer,
    encode,
)

# An answer holds a few histograms of some kB each; a longer line is not one of ours.
_LONGEST_LINE_BYTES = 16 * 2**20
_BYE_GRACE_S = 2.0


class Worker:
    """A worker process. Use as a context manager: it is always stopped and reaped."""

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
        stdin, stdout = self._child.popen.stdin, self._child.popen.stdout
        if stdin is None or stdout is None:
            raise TrialError(f"{name}: no pipes to the worker")
        self._in, self.out = stdin.fileno(), stdout.fileno()
        os.set_blocking(self.out, False)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.stop(0)

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._child.pid

    def hello(self, timeout_s: float) -> Ready:
        """Ask who it is. Raises TrialError, UnsupportedError."""
        self.send(Hello())
        return self._ready("hello", timeout_s)

    def prepare(self, request: Prepare, timeout_s: float) -> Ready:
        """Have it read the tape and connect. Raises TrialError, UnsupportedError."""
        self.send(request)
        return self._ready("prepare", timeout_s)

    def bye(self) -> None:
        """Ask it to end, and wait a little; whoever stays is stopped at the end of the context."""
        try:
            self.send(Bye())
            self._child.wait(_BYE_GRACE_S)
        except TrialError:
            return

    def close_stdin(self) -> None:
        """Leave it alone, as a caller that dies does."""
        if self._child.popen.stdin is not None:
            self._child.popen.stdin.close()

    def log_tail(self) -> str:
        """The last of what it wrote on stderr."""
        return self._child.log_tail()

    def send(self, message: Message) -> None:
        """Write one request. Raises TrialError when the worker is gone."""
        line = encode(message)
        try:
            while line:
                line = line[os.write(self._in, line) :]
        except OSError as error:
            raise self._gone() from error

    def receive(self, timeout_s: float) -> Answer | None:
        """The next answer, or None when none comes in time. Raises TrialError."""
        deadline = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(self.out, selectors.EVENT_READ)
            while (answer := self.take()) is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                selector.select(left)
        return answer

    def take(self) -> Answer | None:
        """An answer that is already there, or None; never waits. Raises TrialError."""
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
                raise self._gone()
            self._buffer += chunk
            if len(self._buffer) > _LONGEST_LINE_BYTES and b"\n" not in self._buffer:
                raise TrialError(f"{self.name}: printed a line of over 16 MiB, which is no answer")

    def _decode(self, line: bytes) -> Answer:
        try:
            answer = decode_answer(line)
        except ProtocolError as error:
            raise TrialError(
                f"{self.name}: {error}",
                "a worker's stdout is the protocol's; it must print its log on stderr",
            ) from error
        if isinstance(answer, Done) and (why := _objection(answer)):
            raise TrialError(f"{self.name}: {why}", "PROTOCOL.md says what `done` holds")
        return answer

    def _ready(self, what: str, timeout_s: float) -> Ready:
        answer = self.receive(timeout_s)
        if answer is None:
            raise TrialError(f"{self.name}: no answer to {what} within {timeout_s:g} s")
        if isinstance(answer, Ready):
            return answer
        raise self.refusal(answer, what)

    def refusal(self, answer: Answer, what: str) -> TrialError:
        """The error that an unexpected answer amounts to."""
        if isinstance(answer, Unsupported):
            return UnsupportedError(f"{self.name}: {answer.reason}", answer.remedy)
        if isinstance(answer, Failure):
            return TrialError(f"{self.name}: {what}: {answer.kind}: {answer.text}")
        return TrialError(f"{self.name}: answered {what} with a {type(answer).__name__.lower()}")

    def _gone(self) -> TrialError:
        self._child.wait(_BYE_GRACE_S)
        status = self._child.exited()
        if status is None:
            return TrialError(f"{self.name}: closed its output")
        how = f"exited with status {status}" if status >= 0 else f"was killed by signal {-status}"
        last = self._child.last_words()
        return TrialError(f"{self.name}: {how}" + (f": {last}" if last else ""))


def _objection(done: Done) -> str:
    """What a schema cannot refuse, said before anybody reckons with it; empty: nothing."""
    course, sections = done.course, done.sections
    times = [blob for kind in done.operations.values() for blob in (kind.response, kind.service)]
    try:
        for blob in [done.lag, done.late, *times, *(sections.response if sections else [])]:
            if blob:
                decode(blob)
    except HistogramError as error:
        return str(error)
    if course and len(course.ok) != len(course.response_ns):
        return "a course whose two lists are not of one length"
    if sections and len(sections.ok) != len(sections.response):
        return "sections whose two lists are not of one length"
    return ""
