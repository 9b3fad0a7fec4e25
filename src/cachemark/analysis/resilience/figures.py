"""The figures of a cell, from its calls and from samples of the client's process. Pure."""

import math
from collections import Counter
from collections.abc import Sequence

import msgspec

from cachemark.analysis.resilience.answers import ERRORS, CallAnswer
from cachemark.model.call_log import Call

GOOD_IN_A_ROW = 100
FEWEST_CALLS = 10
TIMELINE_SLICE_MS = 100
_MS = 1_000_000
_CPUS_NS = 1000 * _MS
_Judged = Sequence[tuple[Call, CallAnswer]]


class Phases(msgspec.Struct, frozen=True, kw_only=True):
    """When the calls began, when the fault began and ended, and when the calls ended.

    In ns of CLOCK_MONOTONIC.
    """

    start_ns: int
    fault_ns: int
    fault_end_ns: int
    end_ns: int


class ProcessSample(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time, threads and descriptors of the client's processes at an instant."""

    cpu_ns: int
    threads: int
    descriptors: int
    rss_bytes: int


class Samples(msgspec.Struct, frozen=True, kw_only=True):
    """Samples as the calls begin, before the fault, at its end, and when the calls had ended."""

    begin: ProcessSample
    before: ProcessSample
    fault_end: ProcessSample
    after: ProcessSample


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a cell. A time is None if its event did not happen.

    `during` and `after` count the calls that ended in the fault and after it, by their outcome.
    `recovery_ms` is the time from the fault's end to the first of 100 right answers in a row.
    `misses` are all reads that found nothing; `false_misses` are the misses of keys that the server
    had, or the misses that no server sent, whichever are more. `failed_share` is the share of the
    calls in the fault that failed, if other servers or a new connection would have served them.
    `connections` were opened from the fault's begin to the end of all; `connections_per_s` is their
    number per second until the client had recovered, so that it does not fall while a healthy
    client is watched. `cpus` is the CPU time that the client used in the fault, in CPUs, and
    `cpus_more` by how much that is more than before the fault: a runtime that still compiles does
    so in both. It is None of a fault below 1 s, in which the first stack trace may be most of it.
    `lost_calls` is 1 if calls never returned; `end` has the worker's words about it. `watched_s` is
    how long the calls went on after the fault. Of the machine: `longest_pause_ms` is by how much a
    sleeping thread woke up too late, and `waiting_threads` how many threads of client, server and
    proxy were runnable without a CPU, on average.
    """

    calls: int
    during: dict[str, int]
    after: dict[str, int]
    wrong: int
    stale: int
    misses: int
    false_misses: int
    failed_share: float | None
    first_error_ms: float | None
    longest_ms: float
    p99_during_ms: float | None
    recovery_ms: float | None
    lost_calls: int
    unsent: int
    connections: int
    connections_per_s: float
    cpus: float
    threads_grown: int
    descriptors_grown: int
    rss_grown_bytes: int
    end: str = ""
    cpus_more: float | None = None
    watched_s: float = 0.0
    longest_pause_ms: float = 0.0
    waiting_threads: float = 0.0
    untrusted_calls: int = 0


class PlayedCalls(msgspec.Struct, frozen=True, kw_only=True):
    """Observations while a cell was played."""

    calls: Sequence[Call]
    answers: Sequence[CallAnswer]
    phases: Phases
    samples: Samples
    returned: bool
    unsent: int
    connections: int
    server_misses: int
    end: str = ""
    longest_pause_ns: int = 0
    waited_ns: int = 0
    untrusted_calls: int = 0
    can_be_served: bool = False


def figures(played: PlayedCalls) -> Figures:
    """All figures of a cell."""
    phases, samples = played.phases, played.samples
    judged: _Judged = list(zip(played.calls, played.answers, strict=True))
    in_fault: _Judged = [
        (c, a) for c, a in judged if phases.fault_ns <= c.end_ns < phases.fault_end_ns
    ]
    later: _Judged = [(c, a) for c, a in judged if c.end_ns >= phases.fault_end_ns]
    overlapping = [
        c for c, _ in judged if c.end_ns >= phases.fault_ns and c.begin_ns < phases.fault_end_ns
    ]
    counted = Counter(played.answers)
    misses = sum(call.outcome == "miss" and not call.is_write for call in played.calls)
    fault_ns = phases.fault_end_ns - phases.fault_ns
    recovery_ms = _recovery_ms(later, phases)
    cpus = _cpus(samples.before, samples.fault_end, fault_ns)
    cpus_before = _cpus(samples.begin, samples.before, phases.fault_ns - phases.start_ns)
    return Figures(
        calls=len(judged),
        during=dict(Counter(answer for _, answer in in_fault)),
        after=dict(Counter(answer for _, answer in later)),
        wrong=counted["wrong"],
        stale=counted["stale"],
        misses=misses,
        false_misses=max(counted["false miss"], misses - played.server_misses),
        failed_share=_failed_share(in_fault) if played.can_be_served else None,
        first_error_ms=_first_error_ms(judged, phases),
        longest_ms=max((c.end_ns - c.begin_ns for c, _ in judged), default=0) / _MS,
        p99_during_ms=_p99_ms(overlapping),
        recovery_ms=recovery_ms,
        lost_calls=int(not played.returned),
        unsent=played.unsent,
        connections=played.connections,
        connections_per_s=played.connections / _trouble_s(phases, recovery_ms),
        cpus=cpus,
        cpus_more=cpus - cpus_before if fault_ns >= _CPUS_NS else None,
        threads_grown=samples.after.threads - samples.before.threads,
        descriptors_grown=samples.after.descriptors - samples.before.descriptors,
        rss_grown_bytes=samples.after.rss_bytes - samples.before.rss_bytes,
        end="" if played.returned else played.end or "a call did not return",
        watched_s=(phases.end_ns - phases.fault_end_ns) / 1e9,
        longest_pause_ms=played.longest_pause_ns / _MS,
        waiting_threads=played.waited_ns / max(1, phases.end_ns - phases.fault_ns),
        untrusted_calls=played.untrusted_calls,
    )


def timeline(
    calls: Sequence[Call], answers: Sequence[CallAnswer], phases: Phases
) -> list[dict[str, int]]:
    """How many calls ended in each slice of 100 ms, by outcome."""
    slices = max(1, math.ceil((phases.end_ns - phases.start_ns) / (TIMELINE_SLICE_MS * _MS)))
    slice_counts: list[Counter[str]] = [Counter() for _ in range(slices)]
    for call, answer in zip(calls, answers, strict=True):
        at = (call.end_ns - phases.start_ns) // (TIMELINE_SLICE_MS * _MS)
        slice_counts[min(max(at, 0), slices - 1)][answer] += 1
    return [dict(counts) for counts in slice_counts]


def _trouble_s(phases: Phases, recovery_ms: float | None) -> float:
    """From the fault's begin until the client had recovered, or all ended; at least a second."""
    if recovery_ms is None:
        return max(1.0, (phases.end_ns - phases.fault_ns) / 1e9)
    return max(1.0, (phases.fault_end_ns - phases.fault_ns) / 1e9 + recovery_ms / 1e3)


def _cpus(first: ProcessSample, last: ProcessSample, between_ns: int) -> float:
    return (last.cpu_ns - first.cpu_ns) / max(1, between_ns)


def _failed_share(judged: _Judged) -> float | None:
    """Share of finished calls; None if too few finished, as when callers only wait."""
    if len(judged) < FEWEST_CALLS:
        return None
    return sum(answer in ERRORS for _, answer in judged) / len(judged)


def _first_error_ms(judged: _Judged, phases: Phases) -> float | None:
    ends = (c.end_ns for c, a in judged if a in ERRORS and c.end_ns >= phases.fault_ns)
    first = next(ends, None)
    return None if first is None else (first - phases.fault_ns) / _MS


def _p99_ms(calls: Sequence[Call]) -> float | None:
    times = sorted(call.end_ns - call.begin_ns for call in calls)
    return times[math.ceil(0.99 * len(times)) - 1] / _MS if times else None


def _recovery_ms(later: _Judged, phases: Phases) -> float | None:
    """From the fault's end to the end of the first of 100 right answers in a row."""
    began_ns, in_a_row = 0, 0
    for call, answer in later:
        if answer != "right":
            in_a_row = 0
            continue
        began_ns = call.end_ns if in_a_row == 0 else began_ns
        in_a_row += 1
        if in_a_row == GOOD_IN_A_ROW:
            return (began_ns - phases.fault_end_ns) / _MS
    return None
