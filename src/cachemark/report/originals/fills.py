"""The writes of a fill, for both forms of emcache's tables, without the gets between batches.

A get follows each batch, so that the next one meets a server that has nothing left to do.
"""

from collections.abc import Iterator

from cachemark.model.protocol import Done, Operation

_STORES = ("set", "mset")


def items(done: Done) -> int:
    """The number of items that were sent."""
    return sum(store.keys for store in _stores(done))


def user_bytes(done: Done) -> int:
    """Their keys and values."""
    return sum(store.key_bytes + store.value_bytes for store in _stores(done))


def send_s(done: Done) -> float:
    """The time of all callers in the calls that send them, in seconds."""
    return sum(store.busy_ns for store in _stores(done)) / 1e9


def _stores(done: Done) -> Iterator[Operation]:
    return (done.operations[kind] for kind in done.operations if kind.startswith(_STORES))
