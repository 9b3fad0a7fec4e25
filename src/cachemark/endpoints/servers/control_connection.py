"""The orchestrator's own connection to a server, for `version` and `stats` in the text protocol.

It sends no operations, so it does not change the counters that verify a trial's counts.
"""

import socket
import ssl
import time
from collections.abc import Callable

from cachemark.endpoints.servers.login import Login
from cachemark.endpoints.servers.tls import Tls
from cachemark.model.address import parse_host_port
from cachemark.model.errors import TrialError
from cachemark.model.server_stats import ServerStats

TIMEOUT_S = 5.0
_REPLY_BYTES_MAX = 1 << 20
_CERTIFICATE = "tls_ca=/path names the certificates to trust, tls_name=HOST the server's name"
_CLIENT_CERTIFICATE = "if it asks for a certificate, add tls_client_cert=/path,tls_client_key=/path"
_LOGIN_WANTED = b"CLIENT_ERROR unauthenticated"
_LOGIN = "add auth=USER:FILE to its name; the first line of the file is the password"
_SASL = "if it wants a login by SASL (memcached's -S), add auth=USER:FILE,sasl=yes"
# 0 would mean that the socket does not wait at all.
_SHORTEST_WAIT_S = 1e-6
# Reports show the version: a longer text is no version.
_VERSION_CHARACTERS_MAX = 1000


class ReplyTimeoutError(TrialError):
    """The server did not answer in time."""


class Control:
    """An open control connection. Methods raise TrialError for a missing or malformed reply."""

    def __init__(
        self,
        address: str,
        timeout_s: float = TIMEOUT_S,
        tls: Tls | None = None,
        login: Login | None = None,
    ) -> None:
        self.address = address
        self._broken = ""
        self._has_stats = False
        self._timeout_s = timeout_s
        self._remedy = _remedy_of_end(tls)
        try:
            self._socket = connect(address, timeout_s, tls)
        except (OSError, ValueError) as error:
            remedy = _CERTIFICATE if isinstance(error, ssl.SSLCertVerificationError) else ""
            raise TrialError(f"server {address}: cannot connect: {error}", remedy) from error
        try:
            if login and not self._log_in(login):
                text = f"server {address}: it rejects the login of {login.user!r}"
                raise TrialError(text, f"is the first line of {login.file} the password?")
        except BaseException:
            self.close()
            raise

    def _log_in(self, login: Login) -> bool:
        """Whether the server accepts a login."""
        return self._ask(login.request(), _lines(b"\r\n")) == b"STORED\r\n"

    def set_timeout(self, timeout_s: float) -> None:
        """Set how long a reply may take from now on."""
        self._timeout_s = timeout_s

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def version(self) -> str:
        """The version that the server reports."""
        reply = self._ask(b"version\r\n", _lines(b"\r\n"))
        if reply.startswith(_LOGIN_WANTED):
            raise TrialError(f"server {self.address}: it wants a login", _LOGIN)
        if not reply.startswith(b"VERSION "):
            raise TrialError(f"server {self.address}: answered `version` with {reply[:60]!r}")
        return self._shown_version(reply[8:].partition(b"\r\n")[0])

    def _shown_version(self, reported: bytes) -> str:
        return reported.decode("utf-8", "replace").strip()[:_VERSION_CHARACTERS_MAX]

    def stats(self) -> ServerStats:
        """The server's general statistics, by name; empty if it does not know `stats`.

        A server that has answered `stats` once must go on to answer it. Raises TrialError.
        """
        reply = self._ask(b"stats\r\n", _lines(b"END\r\n"))
        if reply.startswith(b"ERROR") and not self._has_stats:
            return ServerStats()
        if not reply.endswith(b"END\r\n"):
            raise TrialError(f"server {self.address}: answered `stats` with {reply[:60]!r}")
        self._has_stats = True
        return _table(reply)

    def stats_about(self, what: str) -> ServerStats:
        """The server's statistics of `items` or `slabs`; empty if it does not know them."""
        errors = (b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR")
        whole = _lines(b"END\r\n")
        reply = self._ask(
            f"stats {what}\r\n".encode(), lambda reply: whole(reply) or reply.startswith(errors)
        )
        return ServerStats() if reply.startswith(errors) else _table(reply)

    def reset_stats(self) -> None:
        """Reset the server's counters to zero."""
        self._order("stats reset", b"RESET\r\n")

    def remove_items(self) -> None:
        """Remove all items of the server."""
        self._order("flush_all", b"OK\r\n")

    def _order(self, order: str, answer: bytes) -> None:
        reply = self._ask(f"{order}\r\n".encode(), _lines(b"\r\n"))
        if reply != answer:
            raise TrialError(f"server {self.address}: answered `{order}` with {reply[:60]!r}")

    def _ask(self, request: bytes, is_whole: Callable[[bytes], bool]) -> bytes:
        if self._broken:
            # A late reply to the earlier request would be taken for the reply to this one.
            raise TrialError(self._broken)
        try:
            return self._exchange(request, is_whole)
        except TrialError as error:
            self._broken = error.text
            raise

    def _exchange(self, request: bytes, is_whole: Callable[[bytes], bool]) -> bytes:
        reply = b""
        # One time-out for the whole reply, even if the server sends single bytes.
        deadline = time.monotonic() + self._timeout_s
        try:
            self._socket.settimeout(self._timeout_s)
            self._socket.sendall(request)
            while not is_whole(reply):
                self._socket.settimeout(max(_SHORTEST_WAIT_S, deadline - time.monotonic()))
                chunk = self._socket.recv(65536)
                if not chunk or len(reply) > _REPLY_BYTES_MAX:
                    raise TrialError(f"server {self.address}: broke off its answer", self._remedy)
                reply += chunk
        except TimeoutError as error:
            raise ReplyTimeoutError(f"server {self.address}: timed out") from error
        except OSError as error:
            raise TrialError(f"server {self.address}: {error}", self._remedy) from error
        return reply


def _remedy_of_end(tls: Tls | None) -> str:
    """The remedy if a server ends the connection: with it, the alert of TLS may be lost."""
    if tls is None:
        return f"if it wants TLS, add tls=yes to its name; {_SASL}"
    return _SASL if tls.client_cert else f"{_CLIENT_CERTIFICATE}; {_SASL}"


def _table(reply: bytes) -> ServerStats:
    rows = [line.split(" ", 2) for line in reply.decode("utf-8", "replace").splitlines()]
    return ServerStats({row[1]: row[2] for row in rows if len(row) == 3 and row[0] == "STAT"})


def _lines(end: bytes) -> Callable[[bytes], bool]:
    """Tests whether an answer in text is complete, or begins with an error."""
    return lambda reply: reply.endswith(end) or reply.startswith((b"ERROR", _LOGIN_WANTED))


def connect(address: str, timeout_s: float, tls: Tls | None = None) -> socket.socket:
    """Connect, with Nagle's algorithm off (TCP_NODELAY). Raises OSError, ValueError, UsageError."""
    if address.startswith("unix:"):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout_s)
        connection.connect(address.removeprefix("unix:"))
        return connection
    host, port = parse_host_port(address)
    connection = socket.create_connection((host, port), timeout_s)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tls is None:
        return connection
    try:
        return tls.context().wrap_socket(connection, server_hostname=tls.name or host)
    except BaseException:
        connection.close()
        raise
