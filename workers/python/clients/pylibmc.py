"""pylibmc: libmemcached behind one `Client` for each thread, as a client must not be shared.

To libmemcached a `get` that fails is a miss, whether the server died, was silent or refused it;
only the next call raises ServerDown. Here a miss stands once the call after it has not said so.
What stays a miss is a get that is answered ERROR or CLIENT_ERROR, which leaves no trace at all.
Without a reply it can only set, and by a setting of the whole client: a tape that has the same verb
with and without a reply is refused.
"""

from __future__ import annotations

import pylibmc

from clients import Base
from judge import (
    CLIENT,
    CONNECTION,
    PROTOCOL,
    SERVER,
    TIMEOUT,
    accepted,
    found,
    found_many,
    known,
    sent,
    stored,
    stored_many,
)

LIBRARY = "pylibmc"
API = "sync"
KEYS = str
WIRES = ("text", "binary")
FEATURES = ("threads", "open_loop", "unix")
OPTIONS = ("nodelay",)  # the library's default is off; ours is on
UNREACHABLE = (OSError, pylibmc.Error)
# Longer than a lane is idle, so that the call after a failure meets a server that is down.
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


def refuse(kinds):
    """Why a mix of kinds cannot be done, or the empty string."""
    with_reply = {"set", "mset", "add", "replace", "delete", "touch"} & kinds
    if with_reply and kinds & {"set_noreply", "mset_noreply"}:
        return f"no writes without a reply beside {', '.join(sorted(with_reply))}"
    return ""


class Session(Base):
    """The client of one thread."""

    def __init__(self, setup):
        address = setup.path or f"{setup.host}:{setup.port}"
        timeout_ms = max(1, round(setup.timeout_s * 1e3))
        self._client = pylibmc.Client(
            [address],
            binary=setup.wire == "binary",
            behaviors={
                "tcp_nodelay": setup.on("nodelay", "on"),
                "connect_timeout": timeout_ms,
                "_poll_timeout": timeout_ms,
                "send_timeout": timeout_ms * 1000,
                "receive_timeout": timeout_ms * 1000,
                "retry_timeout": _DOWN_S,
            },
        )
        self._missed_at = -1
        self._client.get_stats()

    def begin(self, quiet):
        self._missed_at = -1
        self._client.set_behaviors({"_noreply": quiet})

    def _found(self, value, op):
        code = found(value, op)
        if code == 0:
            self._missed_at = len(self.record.codes)
        return code

    def _found_many(self, values, op):
        code = found_many(values, op)
        if code >= 0 and len(values) < len(op.keys):
            self._missed_at = len(self.record.codes)
        return code

    def get(self, op):
        return self._client.get, (op.key,), self._found

    def mget(self, op):
        return self._client.get_multi, (op.keys,), self._found_many

    def set(self, op):
        return self._client.set, (op.key, op.value, op.exptime_s), stored

    def set_noreply(self, op):
        return self._client.set, (op.key, op.value, op.exptime_s), sent

    def mset(self, op):
        return self._client.set_multi, (op.pairs, op.exptime_s), stored_many

    def mset_noreply(self, op):
        return self._client.set_multi, (op.pairs, op.exptime_s), sent

    def add(self, op):
        return self._client.add, (op.key, op.value, op.exptime_s), accepted

    def replace(self, op):
        return self._client.replace, (op.key, op.value, op.exptime_s), accepted

    def delete(self, op):
        return self._client.delete, (op.key,), known

    def touch(self, op):
        return self._client.touch, (op.key, op.exptime_s), known

    def failure(self, error, _op):
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
        """The last call was no miss: its connection was lost in it."""
        codes = self.record.codes
        if self._missed_at == len(codes) - 1 and codes and codes[-1] >= 0:
            codes[-1] = CONNECTION
            self.record.failed += 1

    def settle(self):
        if self._missed_at == len(self.record.codes) - 1:
            try:
                self._client.get_stats()
            except pylibmc.Error:
                self._unmiss()

    def barrier(self):
        # It has no `version`; `stats` is no get and no set either.
        self._client.set_behaviors({"_noreply": False})
        self._client.get_stats()
        return 1

    def close(self):
        self._client.disconnect_all()
