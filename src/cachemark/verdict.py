"""Is this trial valid? Pure rules over what the client counted and what the server counted.

INVALID: the figures cannot be trusted, so none is shown. OVERLOAD: an open loop whose server or
client could not keep up; its response times grow with the window and have no steady state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from cachemark import histogram
from cachemark.experiment import Load, Workload, longest_run
from cachemark.outcome import Verdict
from cachemark.protocol import Done, Operation

# An open loop that did less of its plan than this did not hold its schedule.
_LEAST_ACHIEVED = 0.99
# The generator's own delay may be this much of what it reports, or this long.
_LAG_SHARE = 0.05
_LAG_FLOOR_NS = 100_000


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict, the reasons for it, and what a reader should know besides."""

    verdict: Verdict
    reasons: list[str]
    notes: list[str]


Figure = Callable[[Operation], int]


def _keys(operation: Operation) -> int:
    return operation.keys


def _hits(operation: Operation) -> int:
    return operation.hits


def _misses(operation: Operation) -> int:
    return operation.misses


def _swapped(operation: Operation) -> int:
    return operation.hits - operation.not_stored


def _refused(operation: Operation) -> int:
    return operation.not_stored


def _each(verbs: str, figure: Figure) -> dict[str, Figure]:
    return dict.fromkeys(verbs.split(), figure)


# A counter of the server's `stats`, and what an operation of each verb adds to it. A cas is a gets
# and, where that found something, a cas; a fetch is a get and, where that found nothing, a set.
COUNTERS: dict[str, dict[str, Figure]] = {
    "cmd_get": _each("get gets mget cas fetch", _keys),
    "get_hits": _each("get gets mget cas fetch", _hits),
    "get_misses": _each("get gets mget cas fetch", _misses),
    "cmd_set": _each("set add replace mset", _keys) | _each("cas", _hits) | _each("fetch", _misses),
    "delete_hits": _each("delete", _hits),
    "delete_misses": _each("delete", _misses),
    # A touch that misses is not counted on every protocol.
    "touch_hits": _each("touch gat", _hits),
    "incr_hits": _each("incr", _hits),
    "incr_misses": _each("incr", _misses),
    "decr_hits": _each("decr", _hits),
    "decr_misses": _each("decr", _misses),
    "cas_hits": _each("cas", _swapped),
    "cas_badval": _each("cas", _refused),
}
# What a client that merges reads, or answers them from a cache of its own, may leave out.
_READ_COUNTERS = frozenset({"cmd_get", "get_hits", "get_misses"})
# Without a reply these are a hit or a miss at the server; the client cannot know which.
_UNTOLD = frozenset({"delete_noreply", "incr_noreply", "decr_noreply"})


def judge(
    measure: Done,
    *,
    workload: Workload,
    load: Load,
    before: dict[str, str],
    after: dict[str, str],
    shared_server: bool = False,
    merges: bool = False,
) -> Judgement:
    """Judge the measured window of one trial.

    `before` and `after` are the server's `stats` round the window; `shared_server`: others may use
    it too, so counts beyond ours are noted, not held against the trial; `merges`: the client says
    that it may answer reads without a command for each, so fewer of them are noted likewise.
    """
    reasons = [*_own_counts(measure), *_window(measure)]
    notes: list[str] = []
    for name, surplus, text in _unequal(measure, workload, before, after):
        allowed = shared_server if surplus else merges and name in _READ_COUNTERS
        (notes if allowed else reasons).append(text)
    reasons += _generator(measure) if load.schedule != "closed" else []
    if measure.bound:
        notes = [*notes, f"{measure.bound} operations were due and waited for a connection"]
    if measure.beyond:
        notes = [*notes, f"{measure.beyond} times were above 100 s and are shown as 100 s"]
    evicted = _delta(before, after, "evictions")
    if evicted and workload.fill_percent is not None:
        reasons.append(f"the server evicted {evicted} items, so the fill went too far")
    elif evicted:
        notes = [*notes, "the server evicted items in the window"]
    if reasons:
        return Judgement(verdict="INVALID", reasons=reasons, notes=notes)
    overload = _overload(measure, load) if load.schedule != "closed" else []
    if overload:
        return Judgement(verdict="OVERLOAD", reasons=overload, notes=notes)
    return Judgement(verdict="VALID", reasons=[], notes=notes)


def _own_counts(measure: Done) -> list[str]:
    reasons: list[str] = []
    for kind, op in measure.operations.items():
        accounted = op.ok + sum(op.errors.values()) + op.wrong_values
        if op.attempts != accounted:
            reasons.append(f"{kind}: {op.attempts} attempts but {accounted} accounted for")
        if op.wrong_values:
            reasons.append(f"{kind}: {op.wrong_values} replies with a wrong value")
    return reasons


def _window(measure: Done) -> list[str]:
    if not sum(op.ok for op in measure.operations.values()):
        return ["not one operation succeeded in the window"]
    if not measure.elapsed_ns:
        return ["the window has no length"]
    return []


def _unequal(
    measure: Done, workload: Workload, before: dict[str, str], after: dict[str, str]
) -> Iterator[tuple[str, bool, str]]:
    """Counters that differ from what the client did: the name, whether the server has more, how."""
    if any(op.attempts for kind, op in measure.operations.items() if kind in _UNTOLD):
        return
    for name, verbs in COUNTERS.items():
        told = _delta(before, after, name)
        least, most = _expected(measure, workload, verbs)
        if told is not None and not least <= told <= most:
            text = f"the server's {name} rose by {told}, the client counted {least}"
            yield name, told > most, text


def _expected(measure: Done, workload: Workload, verbs: dict[str, Figure]) -> tuple[int, int]:
    """What a counter must have risen by: exact, or a range where operations failed.

    A failed operation may or may not have reached the server.
    """
    least = unsure = 0
    for kind, op in measure.operations.items():
        verb = kind.removesuffix("_noreply")
        if verb in verbs:
            least += verbs[verb](op)
            keys_each = longest_run(workload) if verb in ("mget", "mset") else 1
            unsure += (op.attempts - op.ok) * keys_each
    return least, least + unsure


def _delta(before: dict[str, str], after: dict[str, str], name: str) -> int | None:
    if name not in before or name not in after:
        return None
    try:
        return int(after[name]) - int(before[name])
    except ValueError:
        return None


def _generator(measure: Done) -> list[str]:
    """The client's own delay must be small beside what it reports."""
    if measure.lag is None:
        return ["an open loop without a record of its send lag"]
    own = measure.late or measure.lag
    lag_ns = histogram.decode(own).percentile(99.9)
    responses = [
        histogram.decode(op.response).percentile(99.9)
        for op in measure.operations.values()
        if op.response
    ]
    limit_ns = max(_LAG_FLOOR_NS, _LAG_SHARE * max(responses, default=0))
    # Waiting for a connection is the target's delay, not the generator's: it is noted as such. A
    # client that does not tell the two apart is given the benefit of the doubt.
    if lag_ns > limit_ns and (measure.late or not measure.bound):
        return [
            f"the client sent late: send lag p99.9 {lag_ns / 1e3:.0f} µs, "
            f"allowed {limit_ns / 1e3:.0f} µs"
        ]
    return []


def _overload(measure: Done, load: Load) -> list[str]:
    due = sum(op.attempts for op in measure.operations.values()) + measure.unsent
    done = sum(op.ok for op in measure.operations.values())
    if due and done / due < _LEAST_ACHIEVED:
        return [f"only {done} of {due} due operations were done"]
    if load.rate is None:
        return []
    planned_ns = due / load.rate * 1e9
    over_ns = measure.elapsed_ns - planned_ns
    medians = [
        histogram.decode(op.response).percentile(50)
        for op in measure.operations.values()
        if op.response
    ]
    # A backlog that grows evenly to this makes the median half of it; a few slow operations at
    # the end do not move the median.
    if over_ns > (1 - _LEAST_ACHIEVED) * planned_ns and max(medians, default=0) > over_ns / 4:
        rate = done / measure.elapsed_ns * 1e9
        return [f"{load.rate:.0f}/s were due and {rate:.0f}/s done: the backlog grew"]
    return []
