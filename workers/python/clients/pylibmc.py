"""pylibmc: libmemcached behind one `Client` for each thread, as a client must not be shared.

libmemcached reports a failed `get` as a miss, whether the server died, was silent or refused it;
only the next call to that server raises ServerDown. So this file counts a miss only after the next
call has not raised. With several servers that call may go to another server, and a failure then
counts as a miss. A get with the answer ERROR or CLIENT_ERROR also counts as a miss: it leaves no
trace.

It has no logins here: its wheel brings a SASL library without mechanisms.

On the binary wire a `touch` of an existing key waits for a second reply until the time-out, and
then returns true: this file refuses it. Without a reply the library can only set, by a setting of
the whole client: this file refuses a tape with both kinds of writes. `cas` is also such a setting:
with it each get is sent as `gets`.
"""

from __future__ import annotations

import pylibmc

from client import BaseSession
from prepare import ON_OFF
from verify import (
    CLIENT,
    CONNECTION,
    PROTOCOL,
    SERVER,
    TIMEOUT,
    accepted,
    counted,
    found,
    found_many,
    known,
    sent,
    stored,
    stored_many,
    swapped,
)

LIBRARY = "pylibmc"
API = "sync"
KEYS = str
WIRES = ("text", "binary")
FEATURES = ("threads", "open_loop", "in_order", "unix", "cluster")
OPTIONS = {"nodelay": ON_OFF, "hashing": ("default", "ketama")}
UNREACHABLE = (OSError, pylibmc.Error)
# Longer than any pause of a lane, so that the call after a failure still finds the server down.
_DOWN_S = 2
_NO_CONNECTION = (
    pylibmc.ConnectionError,
    pylibmc.HostLookupError,
    pylibmc.ReadError,
    pylibmc.ServerDead,
    pylibmc.SocketCreateError,
    pylibmc.WriteError,
)
_TIMED_OUT = "A TIMEOUT OCCURRED"

CALLS = {
    "get": lambda s, op: (s.client.get, (op.key,), s.found),
    "gets": lambda s, op: (s.client.gets, (op.key,), s.found_with_cas),
    "mget": lambda s, op: (s.client.get_multi, (op.keys,), s.found_many),
    "set": lambda s, op: (s.client.set, (op.key, op.value, op.exptime_s), stored),
    "add": lambda s, op: (s.client.add, (op.key, op.value, op.exptime_s), accepted),
    "replace": lambda s, op: (s.client.replace, (op.key, op.value, op.exptime_s), accepted),
    "delete": lambda s, op: (s.client.delete, (op.key,), known),
    "touch": lambda s, op: (s.client.touch, (op.key, op.exptime_s), known),
    "mset": lambda s, op: (s.client.set_multi, (op.pairs, op.exptime_s), stored_many),
    "cas": lambda s, op: (s.swap, (op.key, op.value, op.exptime_s), s.swapped),
    "incr": lambda s, op: (s.client.incr, (op.key, op.amount), counted),
    "decr": lambda s, op: (s.client.decr, (op.key, op.amount), counted),
    "set_noreply": lambda s, op: (s.client.set, (op.key, op.value, op.exptime_s), sent),
    "mset_noreply": lambda s, op: (s.client.set_multi, (op.pairs, op.exptime_s), sent),
}


def refuse(setup):
    """Why a mix of kinds cannot be done, or the empty string."""
    answered = {"set", "mset", "add", "replace", "delete", "touch", "cas", "incr", "decr"}
    mixed = sorted(answered & setup.kinds)
    if mixed and setup.kinds & {"set_noreply", "mset_noreply"}:
        return f"no writes without a reply beside {', '.join(mixed)}"
    if len(setup.servers) > 1 and "mget" in setup.kinds:
        return "no multi-key get over several servers: it skips a lost server without an error"
    if setup.wire == "binary" and "touch" in setup.kinds:
        return "no binary touch: it waits for a second reply until its time-out"
    return ""


class Session(BaseSession):
    """The client of one thread."""

    def __init__(self, setup):
        behaviors = {"tcp_nodelay": True} if setup.on("nodelay", setup.common) else {}
        if setup.common:
            timeout_ms = max(1, round(setup.timeout_s * 1e3))
            behaviors.update(
                connect_timeout=timeout_ms,
                _poll_timeout=timeout_ms,
                send_timeout=timeout_ms * 1000,
                receive_timeout=timeout_ms * 1000,
                retry_timeout=_DOWN_S,
            )
        if {"cas", "gets"} & setup.kinds:
            behaviors["cas"] = True
        if setup.options.get("hashing") == "ketama":
            behaviors["ketama"] = True
        addresses = [server.path or f"{server.host}:{server.port}" for server in setup.servers]
        binary = setup.wire == "binary"
        self.client = pylibmc.Client(addresses, binary=binary, behaviors=behaviors)
        self._missed_at = -1
        self._servers, self._proxied = len(addresses), False
        try:
            self._ask()
        except pylibmc.Error:
            if self._servers > 1:
                raise
            # twemproxy closes a connection that asks for `stats`; the library would then wait.
            self.client = pylibmc.Client(addresses, binary=binary, behaviors=behaviors)
            self._proxied = True
            self._ask()

    def _ask(self):
        """Send a command with a reply on each connection. The library has no `version`."""
        if self._proxied:
            self.client.touch("cachemark", 0)
        else:
            self.client.get_stats()  # neither a get nor a set

    def begin(self, quiet):
        self._missed_at = -1
        self.client.set_behaviors({"_noreply": quiet})

    def found(self, value, op):
        return self._unsure(found(value, op), value is not None)

    def found_with_cas(self, answer, op):
        return self.found(answer[0], op)

    def found_many(self, values, op):
        return self._unsure(found_many(values, op), len(values) == len(op.keys))

    def swapped(self, answer, op):
        return self._unsure(swapped(answer, op), answer[0] is not None)

    def _unsure(self, code, complete):
        """Remember a miss: it may have been a failure."""
        if code >= 0 and not complete:
            self._missed_at = len(self.record.codes)
        return code

    def swap(self, key, value, exptime_s):
        """Change a value as programs do: the value that it read, and whether it stored its own."""
        read, token = self.client.gets(key)
        try:
            return read, read is not None and self.client.cas(key, value, token, exptime_s)
        except pylibmc.NotFound:
            return read, False

    def failure(self, error, op):
        if isinstance(error, pylibmc.NotFound):
            return op.ok_code | 1 if op.kind == "replace" else 0  # this exception is an answer
        if isinstance(error, pylibmc.ServerDown):
            self._unmiss()
            return CONNECTION
        if isinstance(error, pylibmc.ServerError):
            return SERVER
        if isinstance(error, _NO_CONNECTION):
            return CONNECTION
        if isinstance(error, (pylibmc.ClientError, pylibmc.TooBig, TypeError, ValueError)):
            return CLIENT
        return TIMEOUT if _TIMED_OUT in str(error) else PROTOCOL

    def _unmiss(self):
        """Correct the last call: it was no miss, but lost its connection."""
        codes = self.record.codes
        if self._missed_at == len(codes) - 1 and codes and codes[-1] >= 0:
            codes[-1] = CONNECTION
            self.record.failed += 1

    def finish(self):
        if self._missed_at == len(self.record.codes) - 1:
            try:
                self._ask()
            except pylibmc.Error:
                self._unmiss()

    def barrier(self):
        self.client.set_behaviors({"_noreply": False})
        self._ask()
        return self._servers

    def close(self):
        self.client.disconnect_all()
