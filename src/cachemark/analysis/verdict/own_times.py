"""A worker's own clock and CPU time, checked against outside observations.

The rate is a count divided by a time that the worker reports itself, and so is the CPU time for
each operation. The orchestrator, or the agent of a worker's host, has a clock of its own, and the
scheduler's account of the worker's processes. A worker that reports much less time than they saw
would be ranked too high.
"""

from collections.abc import Iterator, Sequence

from cachemark.analysis.verdict.conservation import executed_commands
from cachemark.analysis.verdict.trial_verdict import limit_finding
from cachemark.model.experiment import Load
from cachemark.model.experiment_limits import outstanding_ops
from cachemark.model.outcome import CommandCount, Finding, Observed, Outcome
from cachemark.model.protocol import Done
from cachemark.model.protocol_results import attempts_of
from cachemark.model.rounds import Rounds
from cachemark.model.server_stats import ServerStats
from cachemark.model.units import plain

# A window by time ends at its time, or with the operations that are then outstanding. Where they
# are rare, the last reply may come long before the end.
_SHORTER_PART = 0.25
_RARE_OPERATIONS = 10
# The first completion of a slice comes at most this number of operations late.
_LATE_OPERATIONS = 2
_STEADY = frozenset({"closed", "uniform", "poisson"})
# How much shorter a window may be than its progress shows, whatever the machine does.
_LASTED_PART = 0.1
# Seen from outside, a window cannot be shorter: both clocks are the kernel's monotonic one.
_LONGER_NS = 50_000_000
# A worker's account may be in ticks of 10 ms, and may lack some of its threads.
_CPU_PART = 0.2
_CPU_NS = 40_000_000
# A reading of CPU time takes no longer.
_READING_NS = 1_000_000


def own_time_findings(outcome: Outcome, ticks: Sequence[CommandCount] = ()) -> list[Finding]:
    """INVALID where a worker's times differ from those seen from outside by more than tolerated.

    `ticks`: readings of the counters of a server that no other client uses.
    """
    seen = [*_of_window(outcome), *_of_generators(outcome), *_of_hosts(outcome)]
    return seen or list(_of_counters(outcome, ticks))


def _of_window(outcome: Outcome) -> Iterator[Finding]:
    done, rounds = outcome.measure, outcome.rounds
    if done is None:
        return
    if rounds is None:
        yield from _of_run("", done, outcome.observed, outcome)
        return
    own_ns, wall_ns = sum(rounds.slices.elapsed_ns), sum(rounds.slices.wall_ns)
    yield from _of_slices("", own_ns, done, rounds, outcome.load)
    if own_ns > wall_ns:
        yield _clock_finding("", own_ns, wall_ns, wall_ns)


def _of_generators(outcome: Outcome) -> Iterator[Finding]:
    of = outcome.generators
    if of is not None and of.measure is not None:
        yield from _of_run(" of the load generators", of.measure, of.observed, outcome)


def _of_hosts(outcome: Outcome) -> Iterator[Finding]:
    for part in outcome.hosts:
        where, rounds = f" on {part.name}", outcome.rounds
        if part.measure is None:
            continue
        if rounds is None:
            yield from _of_run(where, part.measure, part.observed, outcome)
        else:
            yield from _of_slices(where, part.slices_ns, part.measure, rounds, outcome.load)


def _of_run(
    where: str, done: Done, observed: Observed | None, outcome: Outcome
) -> Iterator[Finding]:
    if observed is None:
        return
    own_ns = done.elapsed_ns
    least_ns, passed_ns = max(
        (round((1 - _LASTED_PART) * observed.lasted_ns), observed.lasted_ns),
        (_least_by_time_ns(done, observed, outcome), observed.duration_ns or 0),
    )
    if own_ns < least_ns:
        yield _clock_finding(where, own_ns, passed_ns, least_ns)
    elif own_ns > observed.wall_ns + _LONGER_NS:
        yield _clock_finding(where, own_ns, observed.wall_ns, observed.wall_ns + _LONGER_NS)
    if observed.cpu_ns is not None:
        yield from _of_cpu(where, done, observed.cpu_ns)


def counted_part(outcome: Outcome, ticks: Sequence[CommandCount]) -> tuple[int, int] | None:
    """A part of the window in which the server's counters rose, in ns since its start."""
    begun = executed_commands(ServerStats(outcome.stats_before))
    ended = executed_commands(ServerStats(outcome.stats_after))
    if begun is None or ended is None:
        return None
    first = [tick.at_ns for tick in ticks if tick.commands > begun]
    last = [tick.at_ns - tick.took_ns for tick in ticks if tick.commands < ended]
    return (first[0], last[-1]) if first and last else None


def _of_counters(outcome: Outcome, ticks: Sequence[CommandCount]) -> Iterator[Finding]:
    """Check the workers of all hosts together: the server cannot tell them apart."""
    done, counted = outcome.measure, counted_part(outcome, ticks)
    if done is None or counted is None:
        return
    first_ns, last_ns = counted
    # The server may do what the client has given up.
    least_ns = round((1 - _LASTED_PART) * (last_ns - first_ns)) - _failed_ns(done, outcome)
    if done.elapsed_ns < least_ns:
        yield _clock_finding("", done.elapsed_ns, last_ns - first_ns, least_ns)
    seen = [part.observed for part in outcome.hosts if part.observed]
    error_ns = 2 * sum(part.clock_error_ns for part in outcome.hosts) + _READING_NS
    for observed in filter(None, [outcome.observed, *seen]):
        ends_ns = max(last_ns, observed.duration_ns or 0) - error_ns
        within = [
            cpu_ns
            for at_ns, cpu_ns in observed.cpu_readings
            if first_ns + error_ns <= at_ns <= ends_ns
        ]
        if within and outcome.generators is None:
            yield from _of_cpu("", done, within[-1] - within[0])


def _least_by_time_ns(done: Done, observed: Observed, outcome: Outcome) -> int:
    """How long a window by time lasted at least; 0 where its operations may have ended before."""
    if observed.duration_ns is None or outcome.load.schedule not in _STEADY:
        return 0
    part = _SHORTER_PART + _RARE_OPERATIONS / max(1, attempts_of(done.operations))
    # A failed operation has no reply.
    return round(observed.duration_ns * (1 - part)) - _failed_ns(done, outcome)


def _failed_ns(done: Done, outcome: Outcome) -> int:
    failed = attempts_of(done.operations) - sum(each.ok for each in done.operations.values())
    return failed * outcome.timing.timeout_ms * 1_000_000


def _of_slices(
    where: str, slices_ns: int, done: Done, rounds: Rounds, load: Load
) -> Iterator[Finding]:
    """Check the sum of the slices and the worker's own total, by the smaller of both.

    A slice counts until its end at least, and begins to count with each caller's first completion.
    Slices of which a host knows that they were void may not have been played at all.
    """
    played, counted_ns = len(rounds.slices.ops), (rounds.length_us - rounds.lead_in_us) * 1000
    own_ns, length_ns = min(slices_ns, done.elapsed_ns), played * counted_ns
    # From their number: operations' own times may be a lie too, and lack the waits between them.
    operations = _LATE_OPERATIONS * played * outstanding_ops(load)
    late_ns = round(length_ns * operations / max(1, attempts_of(done.operations)))
    # A failed operation may take up a whole slice.
    everything = [*done.operations.values(), *(done.lead_in or {}).values()]
    failed = sum(each.attempts - each.ok for each in everything)
    least_ns = round((1 - _SHORTER_PART) * length_ns) - late_ns - failed * counted_ns
    if own_ns < least_ns:
        yield _clock_finding(where, own_ns, length_ns, least_ns)


def _of_cpu(where: str, done: Done, seen_ns: int) -> Iterator[Finding]:
    """Check for too little CPU time, which flatters a worker; one that reports none is skipped."""
    own_ns = done.cpu_user_ns + done.cpu_system_ns
    least_ns = round((1 - _CPU_PART) * seen_ns) - _CPU_NS
    if own_ns and own_ns < least_ns:
        text = f"the worker{where} reports {plain(own_ns / 1e9)} s of CPU time, "
        text += f"and the kernel counted {plain(seen_ns / 1e9)} s of it within a part of the window"
        yield limit_finding("own-cpu", text, own_ns / 1e6, least_ns / 1e6, "ms")


def _clock_finding(where: str, own_ns: int, seen_ns: int, limit_ns: int) -> Finding:
    text = f"the worker{where} reports a window of {plain(own_ns / 1e9)} s, "
    text += f"and {plain(seen_ns / 1e9)} s passed"
    return limit_finding("own-clock", text, own_ns / 1e6, limit_ns / 1e6, "ms")
