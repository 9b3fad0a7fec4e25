"""The writes of a fill, for both forms of emcache's tables, without the gets between batches.

A get follows each batch, so that the next one meets a server that has nothing left to do.
"""

from collections.abc import Iterator

from cachemark.model.footprint import Footprint
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Done, Operation
from cachemark.model.server_stats import ServerStats

# The original's units: rates of bytes in 10⁶ a second, sizes of memory in 2²⁰.
RATE_MB = 1e6
MEMORY_MB = 2**20
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


def footprint(fill: Outcome) -> Footprint:
    """The server's memory after a trial that fills it."""
    use = fill.server_use
    return Footprint(
        user_bytes=user_bytes(fill.measure) if fill.measure else 0,
        reported_bytes=ServerStats(fill.stats_after).number("bytes"),
        rss_bytes=use.rss_after_bytes if use else None,
        rss_empty_bytes=use.rss_before_bytes if use else None,
    )


def _stores(done: Done) -> Iterator[Operation]:
    return (done.operations[kind] for kind in done.operations if kind.startswith(_STORES))
