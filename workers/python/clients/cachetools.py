"""cachetools: an `LRUCache` in the process, one for all threads behind a lock, as in its docs.

It has no expiry times, and refuses a tape with one. It keeps references to the program's values, so
it copies nothing.
"""

from __future__ import annotations

import threading

import cachetools

from client import BaseSession
from verify import CLIENT, accepted, found, found_many, known, sent

LIBRARY = "cachetools"
API = "sync"
KEYS = bytes
WIRES = ("none",)
FEATURES = ("threads", "open_loop")
OPTIONS = {}
UNREACHABLE = ()
_ROOM = 1 << 62  # everything fits

CALLS = {
    "get": lambda s, op: (s.get, (op.key,), found),
    "mget": lambda s, op: (s.get_many, (op.keys,), found_many),
    "set": lambda s, op: (s.set, (op.key, op.value), sent),
    "mset": lambda s, op: (s.set_many, (op.pairs,), sent),
    "add": lambda s, op: (s.add, (op.key, op.value), accepted),
    "replace": lambda s, op: (s.replace, (op.key, op.value), accepted),
    "delete": lambda s, op: (s.delete, (op.key,), known),
}


def refuse(setup):
    """Why a tape cannot be played, or the empty string."""
    return "an LRUCache has no expiry time" if setup.expires else ""


class Session(BaseSession):
    """The cache as a program of several threads uses it."""

    def __init__(self, setup):
        self._cache, self._lock = setup.shared(
            lambda: (cachetools.LRUCache(_ROOM), threading.Lock())
        )

    def get(self, key):
        with self._lock:
            return self._cache.get(key)

    def get_many(self, keys):
        with self._lock:
            return {key: self._cache[key] for key in keys if key in self._cache}

    def set(self, key, value):
        with self._lock:
            self._cache[key] = value

    def set_many(self, pairs):
        with self._lock:
            self._cache.update(pairs)

    def add(self, key, value):
        with self._lock:
            if key in self._cache:
                return False
            self._cache[key] = value
            return True

    def replace(self, key, value):
        with self._lock:
            if key in self._cache:
                self._cache[key] = value
                return True
            return False

    def delete(self, key):
        with self._lock:
            return self._cache.pop(key, None) is not None

    def failure(self, error, op):
        return CLIENT
