"""What a run needs of a server, and what speaks against a trial on it. Pure."""

from __future__ import annotations

import msgspec

from cachemark.checks.probe.finding import CONSERVATION, EVERYTHING, EVICTIONS, PIPELINE
from cachemark.endpoints.clients import NATIVE
from cachemark.model.experiment import Experiment, Load, Workload
from cachemark.runs.audit.claims import kinds
from cachemark.runs.audit.value import Caution

# What an item takes beside its key and value, at most, in the servers that are known.
_ITEM_BYTES = 100
_PATTERN_BYTES = 64


def idle(experiment: Experiment) -> set[str]:
    """Wires that the experiment does not speak, and so need no look."""
    wires = {load.wire for load in experiment.loads}
    # A library of its own choice may speak any; the native client's is text.
    if "own" in wires and any(client != NATIVE for client in experiment.clients):
        return set()
    return {"binary"} - wires


def held_bytes(experiment: Experiment) -> int:
    """The most that a server will hold at once."""
    return max((_held_bytes(workload) for workload in experiment.workloads), default=0)


def _held_bytes(workload: Workload) -> int:
    """What its keys take once all are stored; a fill ends before that, short of the limit."""
    if workload.fill_percent is not None:
        return 0
    keys = workload.keys
    longest = _PATTERN_BYTES if keys.pattern else _most(keys.length)
    key_bytes = max(map(len, keys.names)) if keys.names else longest
    count = len(keys.names) if keys.names else keys.count
    return count * (key_bytes + _most(workload.values.size) + _ITEM_BYTES)


# What the engine cuts a law without an upper end at.
_LAW_BYTES = 1_000_000
_UNITS = {"k": 1 << 10, "m": 1 << 20}


def _most(law: str) -> int:
    """The longest that a law of the engine's makes; a name before a colon has no end of its own."""
    return max(_most_of(entry.partition("=")[0]) for entry in law.split(","))


def _most_of(entry: str) -> int:
    if ":" in entry:
        return _LAW_BYTES
    high = entry.rpartition("..")[2].lower()
    unit = _UNITS.get(high[-1:], 1)
    return int(high.rstrip("km")) * unit


def objection(caution: Caution, workload: Workload, load: Load, wire: str) -> str:
    """Why a cell is not to be timed; `wire` is empty while it is not known. Empty: nothing."""
    if caution.void:
        return caution.void
    stores = {"set"} if workload.prefill else set[str]()
    for what in (EVERYTHING, wire, *sorted(kinds(workload) | stores)):
        if what in caution.excluded:
            return caution.excluded[what]
    if _pipelines(workload, load) and PIPELINE in caution.excluded:
        return caution.excluded[PIPELINE]
    return ""


def _pipelines(workload: Workload, load: Load) -> bool:
    """Whether a command may follow another before that one's answer."""
    quiet = any(kind.endswith("_noreply") for kind in kinds(workload))
    several = any(kind.startswith("mset") for kind in kinds(workload))
    return load.depth > 1 or quiet or several


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """A server's `stats` as far as they may be held against a trial, and what is said of it.

    `reason` is why the trial does not count; empty where it may.
    """

    before: dict[str, str]
    after: dict[str, str]
    reason: str = ""
    notes: list[str] = []


def distrust(caution: Caution, before: dict[str, str], after: dict[str, str]) -> Doubt:
    """What to make of the `stats` of a server that does not count or evict as memcached does."""
    evicted = after.get("evictions", "0")
    reason = ""
    if EVICTIONS in caution.excluded and evicted != "0":
        reason = f"the server evicted {evicted} items; {caution.excluded[EVICTIONS]}"
    if CONSERVATION not in caution.excluded:
        return Doubt(before=before, after=after, reason=reason)
    note = f"not held against the server's counters: {caution.excluded[CONSERVATION]}"
    return Doubt(before={}, after={}, reason=reason, notes=[note])
