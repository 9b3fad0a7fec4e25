"""When a client is warm, and whether its slices are long enough. Pure."""

import math
from collections.abc import Sequence
from statistics import median

import msgspec

from cachemark.model.errors import TrialError
from cachemark.model.experiment_checks import MAX_CLOSED_SLICE_MS

# Two stretches of this many slices are compared. A JIT compiler works for seconds, by leaps.
_STRETCH = 8
# Seldom too few: most clients are warm after 16 to 30 slices.
USUAL_ROUNDS = 22
# A client whose typical slice still gains more than this is not warm.
_GAIN = 1.03
# With fewer operations in a slice, its figures depend on the place of its end.
_MIN_OPS_PER_SLICE = 3
# A slice ends with the last operation that began in it. One that lasts this many times
# too long is shorter than the operations of its client.
_OVERRUN = 2.0
# A slice that is made longer has room for this many operations of each caller.
_ROOM_OPS = 4
_STEP_MS = 10


class WarmUpSlice(msgspec.Struct, frozen=True):
    """A slice of the warm-up: the number of operations that ended in it, and its length."""

    ops: int
    wall_ns: int


def most_rounds(longest_ms: float, slice_ms: float) -> int:
    """The most rounds of a sitting's warm-up."""
    return math.ceil(longest_ms / slice_ms)


def is_warm(slices: Sequence[WarmUpSlice]) -> bool:
    """Whether the last slices did not do more operations than the ones before them."""
    if len(slices) < 2 * _STRETCH:
        return False
    ops = [one.ops for one in slices]
    before, last = ops[-2 * _STRETCH : -_STRETCH], ops[-_STRETCH:]
    return median(last) <= _GAIN * median(before)


def operation_ns(slices: Sequence[WarmUpSlice], callers: int) -> int:
    """The time of an operation of one of several callers; 0 without an operation, or for one."""
    played = [one for one in slices[-_STRETCH:] if one.ops]
    if callers == 1 or not played:
        return 0
    return round(callers * median(one.wall_ns / one.ops for one in played))


def needed_ms(slices: Sequence[WarmUpSlice], length_us: int, callers: int) -> float:
    """The length of slices that the operations of a client need; 0: this one will do.

    The best slices decide: on a busy machine, a client may get no CPU in most of its first slices.
    Where every slice lasts too long, the typical one decides: it may have a few fast operations.
    Raises TrialError if slices may not be so long.
    """
    if not slices:
        return 0
    most, typical = max(one.ops for one in slices), median(one.ops for one in slices)
    # A slice in which no operation began lasted as long as its client had no CPU.
    shortest_ns = min(one.wall_ns for one in slices if one.ops or not most)
    shortest_ms, length_ms = shortest_ns / 1e6, length_us / 1e3
    operation_ms = length_ms / max(1, most) if most < _MIN_OPS_PER_SLICE else 0.0
    if shortest_ms > _OVERRUN * length_ms and typical < _MIN_OPS_PER_SLICE * callers:
        operation_ms = shortest_ms
    needed = math.ceil(_ROOM_OPS * operation_ms / _STEP_MS) * _STEP_MS
    if needed > MAX_CLOSED_SLICE_MS:
        text = f"an operation takes {operation_ms:.0f} ms, too long for slices"
        raise TrialError(text, "use --set design=trials")
    return needed
