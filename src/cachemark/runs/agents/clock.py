"""The difference of two hosts' clocks, from the best of some exchanges of datagrams.

A host sends a datagram, the coordinator answers with its own time. With equal delays both ways, the
coordinator's clock was at its answer where the host's was halfway between sending and receiving.
The error is at most half of the round trip, so the exchange with the shortest one counts. Both
carry a code made with a key that only the two sides have; others get no answer.
"""

import contextlib
import hashlib
import hmac
import os
import socket
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from cachemark.model.errors import TrialError

_NONCE_BYTES = 16
_CODE_BYTES = 32
_TIME_BYTES = 8
_EXCHANGES = 64
# Fewer answers than this say too little.
_LEAST_ANSWERS = 8
_ANSWER_TIMEOUT_S = 0.2
# How soon the responder sees that it has ended.
_LOOK_UP_S = 0.2
# Between two exchanges: a short disturbance does not meet them all.
_PAUSE_S = 0.001


class ClockReading(msgspec.Struct, frozen=True, kw_only=True):
    """A host's clock against the coordinator's: `offset_ns` is how far it is ahead.

    The offset is wrong by at most `error_ns`. The round trips are of small datagrams.
    """

    offset_ns: int
    error_ns: int
    round_trip_min_ns: int
    round_trip_median_ns: int
    answers: int


class ClockResponder:
    """Answers the hosts' datagrams with this machine's time, in a thread of its own."""

    def __init__(self, address: str, port: int, key: bytes) -> None:
        self._key = key
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, port))
        self._socket.settimeout(_LOOK_UP_S)
        self.port = int(self._socket.getsockname()[1])
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._answer, name="clock", daemon=True)

    def __enter__(self) -> "ClockResponder":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._socket.close()

    def _answer(self) -> None:
        while not self._ended.is_set():
            # A host that is gone shows as an error of the next call; others go on.
            with contextlib.suppress(OSError):
                asked, sender = self._socket.recvfrom(64)
                nonce, code = asked[:_NONCE_BYTES], asked[_NONCE_BYTES:]
                if hmac.compare_digest(code, _code(self._key, nonce)):
                    now = time.time_ns().to_bytes(_TIME_BYTES, "big")
                    self._socket.sendto(now + _code(self._key, nonce + now), sender)


def read_clock(address: str, port: int, key: bytes) -> ClockReading:
    """Compare this host's clock with the coordinator's. Raises TrialError without answers."""
    found: list[tuple[int, int]] = []
    asked = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(_ANSWER_TIMEOUT_S)
        asking.connect((address, port))
        while asked < _EXCHANGES and (found or asked < _LEAST_ANSWERS):
            asked += 1
            with contextlib.suppress(OSError):
                found.append(_exchange(asking, key))
            time.sleep(_PAUSE_S)
    if len(found) < _LEAST_ANSWERS:
        raise TrialError(
            f"{len(found)} of {asked} datagrams to the coordinator's clock, "
            f"{address} UDP port {port}, were answered",
            "let UDP pass on the same port as TCP",
        )
    found.sort()
    shortest, offset_ns = found[0]
    return ClockReading(
        offset_ns=offset_ns,
        error_ns=(shortest + 1) // 2,
        round_trip_min_ns=shortest,
        round_trip_median_ns=found[len(found) // 2][0],
        answers=len(found),
    )


def _exchange(asking: socket.socket, key: bytes) -> tuple[int, int]:
    """The round trip of one exchange and the offset. Raises OSError without an answer."""
    nonce = os.urandom(_NONCE_BYTES)
    asked = nonce + _code(key, nonce)
    begun_ns, begun_wall_ns = time.perf_counter_ns(), time.time_ns()
    asking.send(asked)
    while True:
        answer = asking.recv(64)
        took_ns = time.perf_counter_ns() - begun_ns
        now, code = answer[:_TIME_BYTES], answer[_TIME_BYTES:]
        # The answer to an earlier exchange may come so late that it is the first one here.
        if len(code) == _CODE_BYTES and hmac.compare_digest(code, _code(key, nonce + now)):
            return took_ns, begun_wall_ns + took_ns // 2 - int.from_bytes(now, "big")
        if took_ns > _ANSWER_TIMEOUT_S * 1e9:
            raise TimeoutError


def _code(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).digest()


class Offset(NamedTuple):
    """How far a clock is ahead of the coordinator's; wrong by at most `error_ns`."""

    ns: int
    error_ns: int


class StartBounds(NamedTuple):
    """When a host began, from the planned start by the coordinator's clock."""

    earliest_ns: int
    latest_ns: int


def start_bounds(late_ns: int, before: Offset, after: Offset) -> StartBounds:
    """When a host can have begun that was late by its own clock.

    The start was planned with the offset `before`. Since then the clock has moved, at most as far
    as the offset `after` the slices says. A clock that gains on the coordinator's is early.
    """
    ahead_ns = after.ns - before.ns
    most_ns = max(before.error_ns, ahead_ns + after.error_ns)
    least_ns = min(-before.error_ns, ahead_ns - after.error_ns)
    return StartBounds(late_ns - most_ns, late_ns - least_ns)


def skew_ns(starts: Sequence[StartBounds]) -> int:
    """How far apart two of these hosts can have begun, at most."""
    if len(starts) < 2:
        return 0
    first, *others = sorted(range(len(starts)), key=lambda host: starts[host].earliest_ns)
    last = max(starts[host].latest_ns for host in others)
    # One host may have both the earliest and the latest possible begin.
    second = starts[others[0]].earliest_ns
    return max(0, last - starts[first].earliest_ns, starts[first].latest_ns - second)
