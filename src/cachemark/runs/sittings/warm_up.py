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
# Fewer operations in a slice than this make its figures a matter of where the slice ends.
_MIN_OPS_PER_SLICE = 3
# A slice ends with the last operation that began in it. One that lasts this many times
# too long is shorter than the operations of its client.
_OVERRUN = 2.0
# A slice of the length that an error suggests has room for this many operations of each caller.
_SUGGESTED_OPS = 4
_STEP_MS = 10


class WarmUpSlice(msgspec.Struct, frozen=True):
    """A slice of the warm-up: how many operations ended in it, and how long it lasted."""

    ops: int
    wall_ns: int


def most_rounds(longest_ms: float, slice_ms: float) -> int:
    """How many rounds the warm-up of a sitting has at most."""
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


def check_length(slices: Sequence[WarmUpSlice], length_us: int, callers: int) -> None:
    """Raise TrialError if the operations of a client are too slow for its slices.

    The best slices decide: on a busy machine, a client may get no CPU in most of its first slices.
    Where every slice lasts too long, the typical one decides: it may have a few fast operations.
    """
    if not slices:
        return
    most = max(one.ops for one in slices)
    typical = median(one.ops for one in slices)
    shortest_ms = min(one.wall_ns for one in slices) / 1e6
    length_ms = length_us / 1e3
    if shortest_ms > _OVERRUN * length_ms and typical < _MIN_OPS_PER_SLICE * callers:
        raise TrialError(
            f"slices of {length_ms:g} ms are shorter than the operations: the shortest slice "
            f"lasted {shortest_ms:.0f} ms, as it ends with the last operation that began in it",
            _remedy(shortest_ms),
        )
    if most < _MIN_OPS_PER_SLICE:
        raise TrialError(
            f"a slice of {length_ms:g} ms has room for {most} operations",
            _remedy(length_ms / max(1, most)),
        )


def _remedy(operation_ms: float) -> str:
    """The remedy for operations that last `operation_ms`."""
    needed_ms = math.ceil(_SUGGESTED_OPS * operation_ms / _STEP_MS) * _STEP_MS
    if needed_ms > MAX_CLOSED_SLICE_MS:
        return "use --set design=trials"
    return f"give --set rounds.slice_ms={needed_ms}, or --set design=trials"
