"""A raw connection for probes: sends bytes, and compares the reply with a pattern."""

import re
import time

from cachemark.endpoints.servers.control_connection import connect

# A server that is silent for this time will not answer.
TIMEOUT_S = 2.0
# After this much silence in all, each further answer gets the shorter time-out.
SILENCES_S = 8.0
LATER_TIMEOUT_S = 0.2
_ERROR = re.compile(rb"(ERROR|CLIENT_ERROR|SERVER_ERROR)[^\r\n]*\r\n")
_SHOWN_BYTES = 60
# Well above the reply to a get of a hundred keys, the longest that a check asks for.
_LONGEST_BYTES = 2**16


class AnswerError(Exception):
    """The reply is not as expected; the text says what was received."""


class Patience:
    """The time-out for a server's answers: shorter after much silence, so that a probe ends."""

    def __init__(self) -> None:
        self._silent_s = 0.0

    def timeout_s(self) -> float:
        """The time-out of the next answer."""
        return TIMEOUT_S if self._silent_s < SILENCES_S else LATER_TIMEOUT_S

    def was_silent(self, waited_s: float) -> None:
        """Add the length of a wait without an answer."""
        self._silent_s += waited_s


class RawConnection:
    """A connection to a server. Use as a context manager."""

    def __init__(self, address: str, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()
        timeout_s = self._patience.timeout_s()
        try:
            self._socket = connect(address, timeout_s)
        except TimeoutError as error:
            self._patience.was_silent(timeout_s)
            raise AnswerError(f"cannot connect: {error}") from error
        except (OSError, ValueError) as error:
            raise AnswerError(f"cannot connect: {error}") from error

    def __enter__(self) -> "RawConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, request: bytes) -> None:
        """Send a request in one piece. Raises AnswerError."""
        timeout_s = self._patience.timeout_s()
        try:
            self._socket.settimeout(timeout_s)
            self._socket.sendall(request)
        except TimeoutError as error:
            self._patience.was_silent(timeout_s)
            raise AnswerError(f"did not read the request for {timeout_s:g} s") from error
        except OSError as error:
            raise AnswerError(f"closed the connection ({error})") from error

    def expect(self, pattern: bytes, most_bytes: int = _LONGEST_BYTES) -> re.Match[bytes]:
        """Receive the reply, which must match completely. Raises AnswerError with the real reply.

        An error line ends the waiting; other bytes, up to `most_bytes`, may be the reply's start.
        """
        wanted = re.compile(pattern, re.DOTALL)
        answer = bytearray()
        wait = _Wait(self._patience)
        while (match := wanted.fullmatch(answer)) is None:
            error = _ERROR.match(answer)
            if error and not wanted.match(answer):
                raise AnswerError(f"answered {printable(error[0])}")
            chunk = self._receive(wait, answer, most_bytes + 1 - len(answer))
            if not chunk:
                raise AnswerError(f"closed the connection{_after(bytes(answer))}")
            answer += chunk
            if len(answer) > most_bytes:
                raise AnswerError(f"answered without end: {printable(bytes(answer))}")
        return match

    def ask(
        self, request: bytes, pattern: bytes, most_bytes: int = _LONGEST_BYTES
    ) -> re.Match[bytes]:
        """Send a request and receive its reply. Raises AnswerError."""
        self.send(request)
        return self.expect(pattern, most_bytes)

    def receive(self, count: int) -> bytes:
        """Receive exactly `count` bytes. Raises AnswerError."""
        if count > _LONGEST_BYTES:
            raise AnswerError(f"announced an answer of {count:,} bytes")
        answer = bytearray()
        wait = _Wait(self._patience)
        while len(answer) < count:
            chunk = self._receive(wait, answer, count - len(answer))
            if not chunk:
                raise AnswerError(f"closed the connection{_after(bytes(answer))}")
            answer += chunk
        return bytes(answer)

    def _receive(self, wait: "_Wait", answer: bytearray, most: int) -> bytes:
        seen = bytes(answer[: _SHOWN_BYTES + 1])
        left_s = wait.left_s()
        if left_s <= 0:
            self._patience.was_silent(wait.timeout_s)
            raise AnswerError(_unfinished(seen, wait.timeout_s))
        self._socket.settimeout(left_s)
        try:
            return self._socket.recv(most)
        except TimeoutError as error:
            self._patience.was_silent(wait.timeout_s)
            raise AnswerError(_unfinished(seen, wait.timeout_s)) from error
        except OSError as error:
            raise AnswerError(f"closed the connection{_after(seen)} ({error})") from error


class _Wait:
    """One time-out for a whole answer, even if the server sends single bytes."""

    def __init__(self, patience: Patience) -> None:
        self.timeout_s = patience.timeout_s()
        self._deadline = time.monotonic() + self.timeout_s

    def left_s(self) -> float:
        """The seconds that are left."""
        return self._deadline - time.monotonic()


def _unfinished(answer: bytes, timeout_s: float) -> str:
    return f"answered {printable(answer)}" if answer else f"no answer for {timeout_s:g} s"


def _after(answer: bytes) -> str:
    return f" after {printable(answer)}" if answer else ""


def printable(answer: bytes) -> str:
    """Bytes as readable text, truncated if long."""
    text = answer[:_SHOWN_BYTES].decode("latin-1").encode("unicode_escape").decode("ascii")
    return text + ("…" if len(answer) > _SHOWN_BYTES else "")
