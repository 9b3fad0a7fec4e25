"""The needs of a run for a server, and the reasons to skip a trial on it. Pure."""

from collections.abc import Iterable, Sequence

import msgspec

from cachemark.model.audit import (
    CONSERVATION,
    EVERYTHING,
    EVICTIONS,
    PIPELINE,
    Fitness,
    ProbeResult,
    Restrictions,
    of_server,
)
from cachemark.model.client_name import NATIVE
from cachemark.model.experiment import Experiment, Load, Workload
from cachemark.model.plan import loads_of
from cachemark.model.server_stats import ServerStats
from cachemark.runs.audit.claims import needed_kinds

# The largest overhead of an item besides its key and value, in the known servers.
_ITEM_BYTES = 100
_PATTERN_BYTES = 64


def unused_wires(experiment: Experiment) -> set[str]:
    """Wires that the experiment does not speak, so that the probe leaves them out."""
    wires = {load.wire for load in experiment.loads}
    # A library may choose any wire as its own; the native client chooses text.
    if "own" in wires and any(client != NATIVE for client in experiment.clients):
        return set()
    return {"binary"} - wires


def stored_bytes(experiment: Experiment) -> int:
    """The most that a server will hold at once."""
    return max((_stored_bytes(workload) for workload in experiment.workloads), default=0)


def _stored_bytes(workload: Workload) -> int:
    """Bytes of all stored keys of a workload; 0 for a fill, which ends below the limit."""
    if workload.fill_percent is not None:
        return 0
    keys = workload.keys
    longest = _PATTERN_BYTES if keys.pattern else _most(keys.length)
    key_bytes = max(map(len, keys.names)) if keys.names else longest
    count = len(keys.names) if keys.names else keys.count
    return count * (key_bytes + _most(workload.values.size) + _ITEM_BYTES)


# The engine's upper limit for a distribution without one.
_LAW_BYTES = 1_000_000
_UNITS = {"k": 1 << 10, "m": 1 << 20}


def _most(law: str) -> int:
    """The largest size in bytes of a distribution; 1 MB for one with a name and a colon."""
    return max(_most_of(entry.partition("=")[0]) for entry in law.split(","))


def _most_of(entry: str) -> int:
    if ":" in entry:
        return _LAW_BYTES
    high = entry.rpartition("..")[2].lower()
    unit = _UNITS.get(high[-1:], 1)
    return int(high.rstrip("km")) * unit


def skip_reason(restrictions: Restrictions, workload: Workload, load: Load, wire: str = "") -> str:
    """Return why a cell is skipped, empty if it is not; `wire`: what the client chose, if known."""
    if restrictions.void:
        return restrictions.void
    for what in (EVERYTHING, wire or load.wire, *sorted(needed_kinds(workload))):
        if what in restrictions.excluded:
            return restrictions.excluded[what]
    if _pipelines(workload, load) and PIPELINE in restrictions.excluded:
        return restrictions.excluded[PIPELINE]
    return ""


def _pipelines(workload: Workload, load: Load) -> bool:
    """Whether a command may follow another before that one's answer."""
    quiet = any(kind.endswith("_noreply") for kind in workload.kinds)
    several = any(kind.startswith("mset") for kind in workload.kinds)
    return load.depth > 1 or quiet or several


class ComparableStats(msgspec.Struct, frozen=True, kw_only=True):
    """The `stats` around a window as far as the verdict may compare them with the client's counts.

    Of a server that does not count as memcached does they have only the counters that are right;
    then they are `partial`. `reason` says why the trial does not count; empty where it does.
    """

    before: ServerStats
    after: ServerStats
    reason: str = ""
    notes: list[str] = []
    partial: bool = False


def comparable_stats(
    restrictions: Restrictions, before: ServerStats, after: ServerStats
) -> ComparableStats:
    """Leave out the counters that the server reports unlike memcached."""
    evicted = after.get("evictions", "0")
    reason = ""
    if EVICTIONS in restrictions.excluded and evicted != "0":
        reason = f"the server evicted {evicted} items; {restrictions.excluded[EVICTIONS]}"
    if CONSERVATION not in restrictions.excluded:
        return ComparableStats(before=before, after=after, reason=reason)
    names = restrictions.true_counters
    only = f", but for {', '.join(names)}" if names else ""
    why = restrictions.excluded[CONSERVATION]
    return ComparableStats(
        before=_select(before, names),
        after=_select(after, names),
        reason=reason,
        notes=[f"the counts were not compared with the server's{only}: {why}"],
        partial=True,
    )


def _select(stats: ServerStats, names: list[str]) -> ServerStats:
    return ServerStats({name: stats[name] for name in names if name in stats})


class SuiteFitness(msgspec.Struct, frozen=True, kw_only=True):
    """The number of a suite's workloads and loads that `run` would play on a server; and why."""

    suite: str
    playable: int
    total: int
    reasons: list[str]


def suites_on(
    server: str, findings: Sequence[ProbeResult], suites: Iterable[Experiment]
) -> list[SuiteFitness]:
    """Each suite with its playable part on the server."""
    fitness = Fitness(server=server, findings=[of for of in findings if of.fit is not True])
    restrictions = of_server(fitness, "")
    results: list[SuiteFitness] = []
    for suite in suites:
        reasons = [
            skip_reason(restrictions, workload, load)
            for workload in suite.workloads
            for load in loads_of(suite, workload)
        ]
        results.append(
            SuiteFitness(
                suite=suite.name,
                playable=reasons.count(""),
                total=len(reasons),
                reasons=list(dict.fromkeys(filter(None, reasons))),
            )
        )
    return results
