"""The orchestrator's own connection to a server that speaks the binary protocol only."""

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from cachemark.endpoints.servers.control_connection import TIMEOUT_S, Control
from cachemark.endpoints.servers.login import Login
from cachemark.endpoints.servers.tls import Tls
from cachemark.model.errors import TrialError
from cachemark.model.server_stats import ServerStats

# Magic, opcode, length of the key, of the extras, type, status, length of the body, opaque, cas.
HEADER = struct.Struct(">BBHBBHIIQ")
_REQUEST = 0x80
_VERSION, _STAT, _LOGIN = 0x0B, 0x10, 0x21


class _Packet(NamedTuple):
    opcode: int
    status: int
    key: bytes
    value: bytes


class BinaryControl(Control):
    """The same as Control, by binary packets."""

    def version(self) -> str:
        return self._shown_version(self._packets(_VERSION, b"")[0].value)

    def stats(self) -> ServerStats:
        return self.stats_about("")

    def stats_about(self, what: str) -> ServerStats:
        packets = self._packets(_STAT, what.encode())
        texts = [(each.key.decode(), each.value.decode()) for each in packets]
        return ServerStats({name: text for name, text in texts if name})

    def reset_stats(self) -> None:
        self._packets(_STAT, b"reset")

    def _log_in(self, login: Login) -> bool:
        return _read(self._ask(login.request(), _ends(_LOGIN)))[-1].status == 0

    def _packets(self, opcode: int, key: bytes) -> list[_Packet]:
        head = HEADER.pack(_REQUEST, opcode, len(key), 0, 0, 0, len(key), 0, 0)
        packets = _read(self._ask(head + key, _ends(opcode)))
        if status := packets[-1].status:
            raise TrialError(f"server {self.address}: answered with the status 0x{status:02x}")
        return packets


def open_control(
    address: str, timeout_s: float = TIMEOUT_S, tls: Tls | None = None, login: Login | None = None
) -> Control:
    """Connect and log in. Raises TrialError, UsageError."""
    make = BinaryControl if login and login.sasl else Control
    return make(address, timeout_s, tls, login)


def _ends(opcode: int) -> Callable[[bytes], bool]:
    """Tests whether an answer is whole: one packet; for `stat`, all up to one without a key."""

    def is_whole(reply: bytes) -> bool:
        packets = _read(reply)
        return bool(packets) and (opcode != _STAT or not packets[-1].key)

    return is_whole


def _read(reply: bytes) -> list[_Packet]:
    return list(_each(reply))


def _each(reply: bytes) -> Iterator[_Packet]:
    """The whole packets of an answer."""
    while len(reply) >= HEADER.size:
        _, opcode, key, extras, _, status, length, _, _ = HEADER.unpack_from(reply)
        body = reply[HEADER.size + extras : HEADER.size + length]
        if len(reply) < HEADER.size + length:
            return
        yield _Packet(opcode, status, body[:key], body[key:])
        reply = reply[HEADER.size + length :]
