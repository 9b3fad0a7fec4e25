"""The memory of servers: for items, and for a hit ratio."""

import msgspec

from cachemark.model.footprint import Footprint


class Fill(msgspec.Struct, frozen=True, kw_only=True):
    """A server filled with items of one size. `ended` says what ended the fill.

    `reason` is why there are no figures, else empty.
    """

    server: str
    version: str = ""
    value_bytes: int
    key_bytes: int
    items: int = 0
    limit_bytes: int | None = None
    ended: str = ""
    footprint: Footprint | None = None
    reason: str = ""


class MemoryNeed(msgspec.Struct, frozen=True, kw_only=True):
    """The memory that a server needs for items.

    `held`: all items were stored in `memory_mib` without an eviction; otherwise the figure is an
    estimate. `rss_bytes` is the full server's resident memory. The items did not fit into
    `too_small_mib`; None if no smaller memory was tried. `reason` is why there are no figures.
    """

    server: str
    items: int
    data_bytes: int
    item_bytes: float | None = None
    memory_mib: int | None = None
    held: bool = False
    too_small_mib: int | None = None
    rss_bytes: int | None = None
    reason: str = ""


class HitRatio(msgspec.Struct, frozen=True, kw_only=True):
    """The hits among the counted fetches, with a server of some memory.

    `held_items` is the mean while they were counted. `settled`: before them, half of its items were
    replaced, no item was evicted any more, or the ratio was constant.
    """

    memory_mib: int
    ratio: float
    fetches: int
    held_items: int | None
    settled: bool


class MemoryForHits(msgspec.Struct, frozen=True, kw_only=True):
    """The least memory that reached a hit ratio, and the most that missed it.

    `reached` and `missed` are None if no memory did so. `all_items_mib` is an estimate. `reason` is
    why there is no answer.
    """

    server: str
    items: int
    data_bytes: int
    target: float
    all_items_mib: int | None = None
    reached: HitRatio | None = None
    missed: HitRatio | None = None
    reason: str = ""
