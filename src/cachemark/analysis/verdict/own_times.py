"""A worker's own clock and CPU time, checked against what was seen from outside.

The rate is a count divided by a time that the worker reports itself, and so is the CPU time for
each operation. The orchestrator, or the agent of a worker's host, has a clock of its own, and the
scheduler's account of the worker's processes. A worker that reports much less time than they saw
would be ranked too high.
"""

from __future__ import annotations

from collections.abc import Iterator

from cachemark.model.outcome import Finding, Observed, Outcome
from cachemark.model.protocol import Done
from cachemark.model.rounds import Rounds

# From outside a window is longer than inside: the worker also prepares its answer, on a machine
# that may be busy. Where operations are rare, the last reply may come long before the end.
_SHORTER_PART = 0.25
_SHORTER_NS = 400_000_000
_RARE_OPERATIONS = 10
# It cannot be shorter from outside; both clocks are the kernel's monotonic one.
_LONGER_NS = 50_000_000
# After it has read its CPU time, a worker still encodes its results.
_CPU_PART = 0.2
_CPU_NS = 100_000_000


def own_time_findings(outcome: Outcome) -> list[Finding]:
    """INVALID where a worker's times differ from those seen from outside by more than tolerated."""
    return [*_of_window(outcome), *_of_generators(outcome), *_of_hosts(outcome)]


def _of_window(outcome: Outcome) -> Iterator[Finding]:
    done, rounds = outcome.measure, outcome.rounds
    if done is None:
        return
    if rounds is None:
        yield from _of_run("", done, outcome.observed)
        return
    slices = rounds.slices
    yield from _of_slices("", sum(slices.elapsed_ns), len(slices.ops), rounds)
    if sum(slices.elapsed_ns) > sum(slices.wall_ns):
        yield _clock_finding("", sum(slices.elapsed_ns), sum(slices.wall_ns), sum(slices.wall_ns))
    yield from _of_slices("", done.elapsed_ns, len(slices.ops) + rounds.void_slices, rounds)
    if slices.worker_cpu_ns and min(slices.worker_cpu_ns) >= 0:
        yield from _of_cpu("", done, sum(slices.worker_cpu_ns))


def _of_generators(outcome: Outcome) -> Iterator[Finding]:
    of = outcome.generators
    if of is not None and of.measure is not None:
        yield from _of_run(" of the load generators", of.measure, of.observed)


def _of_hosts(outcome: Outcome) -> Iterator[Finding]:
    for part in outcome.hosts:
        where, rounds = f" on {part.name}", outcome.rounds
        if part.measure is None:
            continue
        if rounds is None:
            yield from _of_run(where, part.measure, part.observed)
        else:
            played = len(rounds.slices.ops) + rounds.void_slices
            yield from _of_slices(where, part.measure.elapsed_ns, played, rounds)


def _of_run(where: str, done: Done, observed: Observed | None) -> Iterator[Finding]:
    if observed is None:
        return
    seen_ns, own_ns = observed.wall_ns, done.elapsed_ns
    attempts = max(1, sum(operation.attempts for operation in done.operations.values()))
    part = _SHORTER_PART + _RARE_OPERATIONS / attempts
    least_ns = round(seen_ns * (1 - part)) - _SHORTER_NS
    if own_ns < least_ns:
        yield _clock_finding(where, own_ns, seen_ns, least_ns)
    elif own_ns > seen_ns + _LONGER_NS:
        yield _clock_finding(where, own_ns, seen_ns, seen_ns + _LONGER_NS)
    if observed.cpu_ns is not None:
        yield from _of_cpu(where, done, observed.cpu_ns)


def _of_slices(where: str, own_ns: int, played: int, rounds: Rounds) -> Iterator[Finding]:
    """A slice counts until its end at least, and begins to count with its first completion."""
    length_ns = played * (rounds.length_us - rounds.lead_in_us) * 1000
    least_ns = round((1 - _SHORTER_PART) * length_ns)
    if own_ns < least_ns:
        yield _clock_finding(where, own_ns, length_ns, least_ns)


def _of_cpu(where: str, done: Done, seen_ns: int) -> Iterator[Finding]:
    """Only too little is a lie that helps; a worker that reports none has no such figure."""
    own_ns = done.cpu_user_ns + done.cpu_system_ns
    least_ns = round((1 - _CPU_PART) * seen_ns) - _CPU_NS
    if own_ns and own_ns < least_ns:
        text = (
            f"the worker{where} reports {own_ns / 1e9:.3g} s of CPU time, "
            f"and the kernel counted {seen_ns / 1e9:.3g} s"
        )
        yield Finding(
            rule="own-cpu",
            weight="INVALID",
            text=text,
            figure=own_ns / 1e6,
            limit=least_ns / 1e6,
            unit="ms",
        )


def _clock_finding(where: str, own_ns: int, seen_ns: int, limit_ns: int) -> Finding:
    return Finding(
        rule="own-clock",
        weight="INVALID",
        text=f"the worker{where} reports a window of {own_ns / 1e9:.3g} s, "
        f"and {seen_ns / 1e9:.3g} s passed",
        figure=own_ns / 1e6,
        limit=limit_ns / 1e6,
        unit="ms",
    )
