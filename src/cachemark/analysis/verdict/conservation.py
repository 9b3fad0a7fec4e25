"""Conservation of counts: the client's own counts, and the client's against the server's."""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from cachemark.analysis.percentiles import min_sample_size
from cachemark.analysis.verdict.trial_verdict import invalid_finding, note_finding
from cachemark.model import histogram
from cachemark.model.experiment import Load, Workload
from cachemark.model.outcome import Finding
from cachemark.model.protocol import Done, Operation
from cachemark.model.protocol_results import attempts_of
from cachemark.model.server_stats import ServerStats
from cachemark.model.work_length import max_keys_per_command

CountOf = Callable[[Operation], int]
# Fewer show no mean time of an operation, as they show no median.
_LEAST_OPERATIONS = min_sample_size(50.0)


_keys, _hits, _misses, _not_stored, _done = map(
    attrgetter, ("keys", "hits", "misses", "not_stored", "ok")
)


def _each(verbs: str, figure: CountOf) -> dict[str, CountOf]:
    return dict.fromkeys(verbs.split(), figure)


# A counter of the server's `stats`, or the sum of several, and what an operation of each verb adds
# to it. A cas is a gets and, where that found something, a cas, before which another caller may
# delete the key; a fetch is a get and, where that found nothing, a set.
COUNTERS: dict[str, dict[str, CountOf]] = {
    "cmd_get": _each("get gets mget cas fetch", _keys),
    "get_hits": _each("get gets mget cas fetch", _hits),
    "get_misses": _each("get gets mget cas fetch", _misses),
    "cmd_set": _each("set add replace append prepend mset", _keys)
    | _each("cas", _hits)
    | _each("fetch", _misses),
    "cmd_flush": _each("flush", _done),
    "delete_hits": _each("delete", _hits),
    "delete_misses": _each("delete", _misses),
    # A touch that misses is not counted on every protocol.
    "touch_hits": _each("touch gat", _hits),
    "incr_hits": _each("incr", _hits),
    "incr_misses": _each("incr", _misses),
    "decr_hits": _each("decr", _hits),
    "decr_misses": _each("decr", _misses),
    "cas_hits": _each("cas", lambda of: of.hits - of.not_stored),
    "cas_badval cas_misses": _each("cas", _not_stored),
}
# Every command that a server counts; each is one of its own counters.
_COMMANDS = (
    "cmd_get",
    "cmd_set",
    "cmd_touch",
    "delete_hits",
    "delete_misses",
    "incr_hits",
    "incr_misses",
    "decr_hits",
    "decr_misses",
)
# Counters that may lack reads which a client merges, or answers from its own cache.
_READ_COUNTERS = frozenset({"cmd_get", "get_hits", "get_misses"})
# Without a reply these are a hit or a miss at the server, and the client cannot know which. So the
# sum of both counters is compared.
_UNKNOWN_RESULT = frozenset({"delete_noreply", "incr_noreply", "decr_noreply"})
# The counters that tell whether operations of a verb reached the server, hit or miss.
_ARRIVALS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(["set", "add", "replace", "append", "prepend", "mset"], ("cmd_set",)),
    **{verb: (f"{verb}_hits", f"{verb}_misses") for verb in ("delete", "incr", "decr")},
    "flush": ("cmd_flush",),
}


def executed_commands(stats: ServerStats) -> int | None:
    """How many commands a server has done, by its `stats`; None where those tell none."""
    counts = [count for name in _COMMANDS if (count := stats.number(name)) is not None]
    return sum(counts) if counts else None


def commands_per_server(before: Sequence[ServerStats], after: Sequence[ServerStats]) -> list[int]:
    """How many commands each server did between two readings; empty where one does not say."""
    pairs = [
        (executed_commands(first), executed_commands(last))
        for first, last in zip(before, after, strict=True)
    ]
    rises = [last - first for first, last in pairs if first is not None and last is not None]
    return rises if len(rises) == len(pairs) else []


# With this number of keys and commands for each server, chance leaves no server out: one with a
# tenth of its fair share gets no key of 50 with a probability of e⁻⁵. Skewed keys repeat, so take
# more.
_KEYS_PER_SERVER = 50
_COMMANDS_PER_SERVER = {"uniform": 50, "sequential": 50}
_COMMANDS_PER_SERVER_SKEWED = 5000


def idle_servers(workload: Workload, server_commands: Sequence[int]) -> list[Finding]:
    """Find a server of several that got no command: the client did not distribute its keys.

    Traces are not judged, because their keys may be few.
    """
    servers, idle = len(server_commands), sum(1 for rise in server_commands if not rise)
    if servers < 2 or not idle or workload.trace:
        return []
    keys = len(workload.keys.names) if workload.keys.names else workload.keys.count
    each = _COMMANDS_PER_SERVER.get(workload.keys.distribution, _COMMANDS_PER_SERVER_SKEWED)
    if keys < _KEYS_PER_SERVER * servers or sum(server_commands) < each * servers:
        return []
    text = f"{idle} of {servers} servers got no command: the client did not distribute its keys"
    return [invalid_finding("idle-servers", text)]


def conservation_findings(
    measure: Done,
    workload: Workload,
    load: Load,
    before: ServerStats,
    after: ServerStats,
    *,
    shared_server: bool,
    merges: bool,
) -> list[Finding]:
    """Findings about counts that disagree; arguments as in `judge`."""
    findings = [*_own_counts(measure), *_group_counts(measure, load), *_window(measure)]
    for name, surplus, text in _mismatches(measure, workload, before, after):
        allowed = shared_server if surplus else merges and name in _READ_COUNTERS
        findings.append((note_finding if allowed else invalid_finding)("server-counters", text))
    findings += _unconfirmed(measure, before, after, shared_server=shared_server)
    findings += _connections(measure, before, after)
    if measure.queued:
        text = f"{measure.queued} operations were due and waited for a free connection"
        findings.append(note_finding("connections-bound", text))
    if measure.overflow:
        text = f"{measure.overflow} times were above 100 s and are shown as 100 s"
        findings.append(note_finding("beyond-histogram", text))
    evicted = after.delta(before, "evictions")
    if evicted and workload.fill_percent is not None:
        text = f"the server evicted {evicted} items, so the fill went too far"
        findings.append(invalid_finding("evictions", text))
    elif evicted:
        findings.append(note_finding("evictions", "the server evicted items in the window"))
    return findings


def _own_counts(measure: Done) -> Iterator[Finding]:
    for kind, op in measure.operations.items():
        accounted = op.ok + sum(op.errors.values()) + op.wrong_values
        if op.attempts != accounted:
            text = f"{kind}: {op.attempts} attempts but {accounted} accounted for"
            yield invalid_finding("own-counts", text)
        if op.wrong_values:
            yield invalid_finding(
                "wrong-values", f"{kind}: {op.wrong_values} replies with a wrong value"
            )


def _group_counts(measure: Done, load: Load) -> Iterator[Finding]:
    """Groups × length are the operations, but for cut groups.

    The end of a run cuts one group of each caller at most. Slices cut any number of them, and a
    failed operation takes its group's operations with it: then there is only an upper bound.
    """
    groups = measure.groups
    if groups is None:
        return
    attempts = attempts_of(measure.operations)
    ok = sum(op.ok for op in measure.operations.values())
    in_groups = groups.ok * groups.length
    cut = load.processes * load.threads * (groups.length - 1)
    all_count = attempts == ok and measure.lead_in is None
    timed = histogram.decode(groups.time).count if groups.time else 0
    if in_groups > ok or (all_count and in_groups < ok - cut) or timed != groups.ok:
        text = (
            f"{groups.ok} groups of {groups.length} operations, {timed} of them timed, "
            f"but {ok} operations"
        )
        yield invalid_finding("group-counts", text)


def _window(measure: Done) -> list[Finding]:
    if not sum(op.ok for op in measure.operations.values()):
        return [invalid_finding("nothing-done", "no operation succeeded in the window")]
    if not measure.elapsed_ns:
        return [invalid_finding("no-window", "the length of the window is zero")]
    attempts = attempts_of(measure.operations)
    if attempts >= _LEAST_OPERATIONS:
        return []
    text = f"the window has {attempts} of the {_LEAST_OPERATIONS} operations that a rate needs"
    return [invalid_finding("few-operations", text)]


def _mismatches(
    measure: Done, workload: Workload, before: ServerStats, after: ServerStats
) -> Iterator[tuple[str, bool, str]]:
    """Counters that differ from the client's counts: name, whether the server has more, text."""
    unknown = {
        kind.removesuffix("_noreply")
        for kind, op in measure.operations.items()
        if op.attempts and kind in _UNKNOWN_RESULT
    }
    compared = [
        (names.split(), verbs) for names, verbs in COUNTERS.items() if unknown.isdisjoint(verbs)
    ] + [([*_ARRIVALS[verb]], {verb: _done}) for verb in sorted(unknown)]
    for names, verbs in compared:
        increase = _increase(before, after, names)
        least, most = _expected(measure, workload, verbs)
        if increase is not None and not least <= increase <= most:
            name = " + ".join(names)
            text = f"the server's {name} rose by {increase}, the client counted {least}"
            yield name, increase > most, text


def _increase(before: ServerStats, after: ServerStats, names: Sequence[str]) -> int | None:
    """The increase of the sum of counters; None if the server does not report all of them."""
    rises = [rise for name in names if (rise := after.delta(before, name)) is not None]
    return sum(rises) if rises and len(rises) == len(names) else None


def _unconfirmed(
    measure: Done, before: ServerStats, after: ServerStats, *, shared_server: bool
) -> Iterator[Finding]:
    """Find lost connections whose operations without a reply no counter of the server confirms.

    The operations that a lost connection held are lost too, and the client cannot count them. A
    worker whose library does not report its reconnects is seen by the server's count.
    """
    opened = 0 if shared_server else after.delta(before, "total_connections") or 0
    # A barrier confirms operations without a reply before a connection is renewed.
    again = max(measure.reconnects, opened - measure.renewed)
    kinds = [
        kind
        for kind, op in measure.operations.items()
        if kind.endswith("_noreply") and op.ok and not _confirmed(kind, before, after)
    ]
    if again and kinds:
        times = "once" if again == 1 else f"{again} times"
        text = (
            f"a connection was opened {times} in the window, and no counter of the server tells "
            f"how many operations of {', '.join(kinds)} were lost with the one before"
        )
        yield invalid_finding("lost-without-reply", text)


def _connections(measure: Done, before: ServerStats, after: ServerStats) -> Iterator[Finding]:
    """Find connections that were opened again by the client's account only, and failed attempts."""
    opened = after.delta(before, "total_connections")
    if opened is not None and opened < measure.renewed:
        text = (
            f"the server's total_connections rose by {opened}, the client opened "
            f"{measure.renewed} connections again"
        )
        yield invalid_finding("server-counters", text)
    if measure.failed_connects:
        text = f"{measure.failed_connects} attempts to open a connection failed"
        yield note_finding("failed-connects", text)


def _confirmed(kind: str, before: ServerStats, after: ServerStats) -> bool:
    names = _ARRIVALS.get(kind.removesuffix("_noreply"), ())
    return _increase(before, after, names) is not None


def _expected(measure: Done, workload: Workload, verbs: dict[str, CountOf]) -> tuple[int, int]:
    """The expected rise of a counter: exact, or a range if operations failed.

    A failed operation may or may not have reached the server.
    """
    least = unsure = 0
    for kind, op in measure.operations.items():
        verb = kind.removesuffix("_noreply")
        if verb in verbs:
            least += verbs[verb](op)
            keys_each = max_keys_per_command(workload) if verb in ("mget", "mset") else 1
            unsure += (op.attempts - op.ok) * keys_each
    return least, least + unsure
