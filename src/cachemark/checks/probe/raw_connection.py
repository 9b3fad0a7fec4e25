"""A raw connection for probes: sends bytes, and compares the reply with a pattern."""

from __future__ import annotations

import re
import time

from cachemark.endpoints.servers.control_connection import connect

# A server that is silent for so long will not answer.
TIMEOUT_S = 2.0
_ERROR = re.compile(rb"(ERROR|CLIENT_ERROR|SERVER_ERROR)[^\r\n]*\r\n")
_SHOWN_BYTES = 60
# The longest reply that a probe asks for is a value of a few MiB.
_LONGEST_BYTES = 16 * 2**20


class AnswerError(Exception):
    """The reply is not as expected; the text says what was received."""


class RawConnection:
    """A connection to a server. Use as a context manager."""

    def __init__(self, address: str, timeout_s: float | None = None) -> None:
        self._patience_s = timeout_s = timeout_s or TIMEOUT_S
        try:
            self._socket = connect(address, timeout_s)
        except (OSError, ValueError) as error:
            raise AnswerError(f"cannot connect: {error}") from error

    def __enter__(self) -> RawConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, request: bytes) -> None:
        """Send a request in one piece. Raises AnswerError."""
        try:
            self._socket.sendall(request)
        except OSError as error:
            raise AnswerError(f"closed the connection ({error})") from error

    def expect(self, pattern: bytes) -> re.Match[bytes]:
        """Receive the reply, which must match completely. Raises AnswerError with the real reply.

        An error line ends the waiting; anything else may still be a part of what is to come.
        """
        wanted = re.compile(pattern, re.DOTALL)
        answer = bytearray()
        deadline = time.monotonic() + self._patience_s
        while (match := wanted.fullmatch(answer)) is None:
            error = _ERROR.match(answer)
            if error and not wanted.match(answer):
                raise AnswerError(f"answered {printable(error[0])}")
            chunk = self._receive(deadline, bytes(answer[: _SHOWN_BYTES + 1]))
            if not chunk:
                raise AnswerError(f"closed the connection{_after(bytes(answer))}")
            answer += chunk
            if len(answer) > _LONGEST_BYTES:
                raise AnswerError(f"answered without end: {printable(bytes(answer))}")
        return match

    def ask(self, request: bytes, pattern: bytes) -> re.Match[bytes]:
        """Send a request and receive its reply. Raises AnswerError."""
        self.send(request)
        return self.expect(pattern)

    def receive(self, count: int) -> bytes:
        """Receive exactly `count` bytes. Raises AnswerError."""
        answer = bytearray()
        deadline = time.monotonic() + self._patience_s
        while len(answer) < count:
            chunk = self._receive(deadline, bytes(answer), count - len(answer))
            if not chunk:
                raise AnswerError(f"closed the connection{_after(bytes(answer))}")
            answer += chunk
        return bytes(answer)

    def _receive(self, deadline: float, answer: bytes, most: int = 1 << 20) -> bytes:
        left = deadline - time.monotonic()
        if left <= 0:
            raise AnswerError(_unfinished(answer, self._patience_s))
        self._socket.settimeout(left)
        try:
            return self._socket.recv(most)
        except TimeoutError as error:
            raise AnswerError(_unfinished(answer, self._patience_s)) from error
        except OSError as error:
            raise AnswerError(f"closed the connection{_after(answer)} ({error})") from error


def _unfinished(answer: bytes, timeout_s: float) -> str:
    return f"answered {printable(answer)}" if answer else f"no answer for {timeout_s:g} s"


def _after(answer: bytes) -> str:
    return f" after {printable(answer)}" if answer else ""


def printable(answer: bytes) -> str:
    """Bytes as readable text, truncated if long."""
    text = answer[:_SHOWN_BYTES].decode("latin-1").encode("unicode_escape").decode("ascii")
    return text + ("…" if len(answer) > _SHOWN_BYTES else "")
