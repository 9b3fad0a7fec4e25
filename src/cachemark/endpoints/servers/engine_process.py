"""A process of the engine that prints lines of JSON: its address, then answers to its stdin."""

import os
import select
import time
from typing import Annotated, TypeVar

import msgspec

from cachemark.endpoints.servers.running import exited_error
from cachemark.host.process import Child
from cachemark.model.errors import DECODE_ERRORS, TrialError

_ANSWER_S = 10.0
_Answer = TypeVar("_Answer")


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """The line that a server prints when it listens."""

    addresses: Annotated[list[str], msgspec.Meta(min_length=1)]
    io: str = ""
    version: str = ""


class _Refusal(msgspec.Struct, frozen=True):
    """The answer to a request that failed."""

    error: str = ""


class EngineProcess:
    """Such a process while it runs; `name` is for errors."""

    def __init__(self, name: str, child: Child) -> None:
        self.child = child
        self._name = name
        self._buffer = b""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.child.pid

    def ask(self, line: bytes, kind: type[_Answer]) -> _Answer:
        """Send a line, and wait for its answer. Raises TrialError."""
        stdin = self.child.popen.stdin
        try:
            if stdin is not None:
                stdin.write(line + b"\n")
                stdin.flush()
        except OSError as error:
            raise TrialError(f"{self._name}: {self.child.last_stderr_line() or error}") from error
        return self.answer(kind)

    def answer(self, kind: type[_Answer], timeout_s: float = _ANSWER_S) -> _Answer:
        """The next line that it prints. Raises TrialError."""
        line = self._line(timeout_s)
        try:
            refusal = msgspec.json.decode(line, type=_Refusal).error
            if not refusal:
                return msgspec.json.decode(line, type=kind)
        except DECODE_ERRORS as error:
            raise TrialError(f"{self._name}: malformed announcement: {error}") from error
        raise TrialError(f"{self._name}: {refusal}")

    def _line(self, timeout_s: float) -> bytes:
        stdout = self.child.popen.stdout
        deadline = time.monotonic() + timeout_s
        while stdout is not None and b"\n" not in self._buffer:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([stdout], [], [], left_s)[0]:
                raise TrialError(f"{self._name}: no answer within {timeout_s:g} s")
            chunk = os.read(stdout.fileno(), 4096)
            if not chunk:
                self.child.wait(timeout_s)
                raise exited_error(self._name, self.child)
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line
