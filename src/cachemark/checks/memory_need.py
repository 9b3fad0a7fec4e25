"""How much memory a server needs for items: estimated, then stored to see that it holds them.

A small server is filled first: its limit divided by its items is the memory of an item. Then a
server with the memory for all items is started, and all of them are stored. If it evicts, it gets
more, and all is stored again. If it does not, less memory is tried, unless the items are many, so
that the answer is not much more than what is needed. What is too large to be tried here is an
estimate, and says so.
"""

import math
from collections.abc import Callable

import msgspec

from cachemark.checks.item_memory import Filler, ItemShapes, fill_shapes
from cachemark.endpoints.probe.checks import check_storing
from cachemark.endpoints.probe.raw_connection import AnswerError
from cachemark.endpoints.servers import ServerSpec, running_unencrypted, with_memory
from cachemark.host.memory import available_bytes
from cachemark.model.errors import TrialError
from cachemark.model.server_memory import MemoryNeed
from cachemark.model.units import MIB

FillProgress = Callable[[str], None]
_SAMPLE_MIB = 32
_LARGE_SAMPLE_MIB = 64
_LARGE_VALUE_BYTES = 4096
_STEP_MIB = 8
# More memory after an eviction, and how often.
_MORE = 1.08
_ATTEMPTS = 5
# The limits of a trial here: this part of the free memory, and this many items.
_FREE_PART = 0.5
_MAX_ITEMS = 20_000_000
# Less memory is tried for so few items, until the answer is known to this part.
_MAX_NARROWED_ITEMS = 1_000_000
_NARROW_PART = 0.05


def memory_need(
    spec: ServerSpec, shapes: ItemShapes, items: int, progress: FillProgress
) -> MemoryNeed:
    """Find the memory for a number of items. A failure is not raised, but stored in `reason`."""
    need = sampled_need(spec, shapes, items, progress)
    memory_mib = need.memory_mib
    if memory_mib is None:
        return need
    if items > _MAX_ITEMS or memory_mib * MIB > _FREE_PART * (available_bytes() or 0):
        return need
    try:
        return _tried(spec, shapes, need, memory_mib, progress)
    except TrialError as error:
        return msgspec.structs.replace(need, reason=error.text)


def sampled_need(
    spec: ServerSpec, shapes: ItemShapes, items: int, progress: FillProgress
) -> MemoryNeed:
    """The memory as a small full server tells it, not tried with all items; or the reason."""
    need = MemoryNeed(server=spec.text, items=items, data_bytes=shapes.data_bytes(items))
    large = shapes.mean_value_bytes > _LARGE_VALUE_BYTES
    sample_mib = _LARGE_SAMPLE_MIB if large else _SAMPLE_MIB
    small = with_memory(spec, f"{sample_mib}m")
    if small is None:
        return msgspec.structs.replace(need, reason="its memory cannot be set: no option memory")
    progress(f"{spec.text}: filling {sample_mib} MiB")
    sample = fill_shapes(small, shapes)
    if sample.reason or not sample.items:
        return msgspec.structs.replace(need, reason=sample.reason or "it held no item")
    each = sample_mib * MIB / sample.items
    memory_mib = _rounded_mib(items * each / MIB)
    return msgspec.structs.replace(need, item_bytes=each, memory_mib=memory_mib)


def _tried(
    spec: ServerSpec, shapes: ItemShapes, need: MemoryNeed, memory_mib: int, progress: FillProgress
) -> MemoryNeed:
    """Store all items, with more memory until none is evicted. Raises TrialError."""
    for _ in range(_ATTEMPTS):
        held, rss_bytes = _stored(spec, memory_mib, shapes, need.items, progress)
        if held:
            need = _held(need, memory_mib, rss_bytes)
            return _narrowed(spec, memory_mib, shapes, need, progress)
        memory_mib = _rounded_mib(memory_mib * _MORE)
    return msgspec.structs.replace(
        need, memory_mib=None, reason=f"it still evicted with less than {memory_mib:,} MiB"
    )


def _held(need: MemoryNeed, memory_mib: int, rss_bytes: int | None) -> MemoryNeed:
    return msgspec.structs.replace(
        need,
        memory_mib=memory_mib,
        item_bytes=memory_mib * MIB / need.items,
        held=True,
        rss_bytes=rss_bytes,
    )


def _narrowed(
    spec: ServerSpec, held_mib: int, shapes: ItemShapes, need: MemoryNeed, progress: FillProgress
) -> MemoryNeed:
    """Halve the range between the memory that held all items, and the bytes of the items alone."""
    if need.items > _MAX_NARROWED_ITEMS:
        return need
    rss_of = {held_mib: need.rss_bytes}

    def holds(memory_mib: int) -> bool:
        held, rss_of[memory_mib] = _stored(spec, memory_mib, shapes, need.items, progress)
        return held

    data_mib = need.data_bytes // MIB
    too_small_mib, held_mib = halve(data_mib, held_mib, holds)
    need = _held(need, held_mib, rss_of[held_mib])
    tried_mib = None if too_small_mib == data_mib else too_small_mib
    return msgspec.structs.replace(need, too_small_mib=tried_mib)


def halve(low_mib: int, high_mib: int, enough: Callable[[int], bool]) -> tuple[int, int]:
    """Memory that is not enough, and memory that is, halved until they are near to each other.

    `high_mib` is known to be enough. So little that a server fails (TrialError) is not.
    """
    while high_mib - low_mib > max(1, _NARROW_PART * high_mib):
        middle_mib = (high_mib + low_mib) // 2
        try:
            is_enough = enough(middle_mib)
        except TrialError:  # so little memory that it does not start
            is_enough = False
        low_mib, high_mib = (low_mib, middle_mib) if is_enough else (middle_mib, high_mib)
    return low_mib, high_mib


def _stored(
    spec: ServerSpec, memory_mib: int, shapes: ItemShapes, items: int, progress: FillProgress
) -> tuple[bool, int | None]:
    """Whether a server with so much memory held all items, and its resident memory then.

    Its memory can be set. Raises TrialError.
    """
    with_limit = with_memory(spec, f"{memory_mib}m")
    assert with_limit is not None
    with running_unencrypted(with_limit) as server:
        _, probed = check_storing(server.addresses[0])
        filler = Filler(probed, shapes)

        def count_stored(stored: int) -> None:
            progress(f"{with_limit.text}: {stored:,} of {items:,} items")

        try:
            refused = filler.store_all(items, count_stored)
        except AnswerError as error:
            raise TrialError(f"while it was filled: {error}") from error
        if refused:
            return False, None
        stats, use = server.stats(), server.use()
        lost = stats.number("evictions") or 0
        current = stats.number("curr_items")
        # The probe's own item may still be there.
        held = not lost and (current is None or current >= items)
        return held, use.rss_bytes if use else None


def _rounded_mib(mib: float) -> int:
    return max(_STEP_MIB, math.ceil(mib / _STEP_MIB) * _STEP_MIB)
