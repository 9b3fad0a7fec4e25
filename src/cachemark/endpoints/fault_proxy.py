"""The engine's fault proxy: a process between client and server that misbehaves on command."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from cachemark.host import process
from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import DECODE_ERRORS, TrialError

_READY_S = 10.0
_ANSWER_S = 10.0
_NAME = "fault proxy"


class _Answer(msgspec.Struct, frozen=True):
    """One line of its stdout."""

    listening: str = ""
    applied_ns: int = 0
    error: str = ""


class _Event(msgspec.Struct, frozen=True):
    """One line of its log."""

    event: str


class FaultProxy:
    """A running fault proxy."""

    def __init__(self, child: process.Child, log: Path) -> None:
        self._child = child
        self._log = log
        self._buffer = b""
        self.address = self._answer(_READY_S).listening

    @property
    def pid(self) -> int:
        """Its process."""
        return self._child.pid

    def apply(self, fault: Mapping[str, object] | None) -> int:
        """Begin a fault, or end it with None; when, in ns of CLOCK_MONOTONIC. Raises TrialError."""
        stdin = self._child.popen.stdin
        try:
            if stdin is not None:
                stdin.write(msgspec.json.encode({"fault": fault}) + b"\n")
                stdin.flush()
        except OSError as error:
            raise TrialError(f"{_NAME}: {self._child.last_stderr_line() or error}") from error
        return self._answer(_ANSWER_S).applied_ns

    def connections(self) -> int:
        """How many connections it has accepted. Raises TrialError."""
        # A line may be in the middle of being written.
        whole = self._log.read_bytes().rpartition(b"\n")[0].splitlines()
        try:
            events = [msgspec.json.decode(line, type=_Event).event for line in whole]
        except DECODE_ERRORS as error:
            raise TrialError(f"{_NAME}: malformed log: {error}") from error
        return events.count("accepted")

    def _answer(self, timeout_s: float) -> _Answer:
        try:
            answer = msgspec.json.decode(self._line(timeout_s), type=_Answer)
        except DECODE_ERRORS as error:
            raise TrialError(f"{_NAME}: malformed answer: {error}") from error
        if answer.error:
            raise TrialError(f"{_NAME}: {answer.error}")
        return answer

    def _line(self, timeout_s: float) -> bytes:
        stdout = self._child.popen.stdout
        deadline = time.monotonic() + timeout_s
        while stdout is not None and b"\n" not in self._buffer:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([stdout], [], [], left_s)[0]:
                raise TrialError(f"{_NAME}: no answer within {timeout_s:g} s")
            chunk = os.read(stdout.fileno(), 4096)
            if not chunk:
                self._child.wait(_ANSWER_S)
                raise TrialError(f"{_NAME}: ended: {self._child.last_stderr_line()}")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line


@contextmanager
def fault_proxy(upstream: str) -> Generator[FaultProxy]:
    """Run a fault proxy before a server. Raises TrialError."""
    with temporary_folder() as folder:
        log = folder / "log"
        command = [process.binary_path(), "fault-proxy", "--listen", "127.0.0.1:0"]
        command += ["--upstream", upstream, "--log", str(log)]
        with process.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            yield FaultProxy(child, log)
