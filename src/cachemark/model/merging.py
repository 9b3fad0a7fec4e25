"""The results of several workers as one: counts are added up, histograms merged by their counts."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import TypeVar

import msgspec

from cachemark.model import histogram
from cachemark.model.outcome import HostNoise
from cachemark.model.protocol import Done, SliceDone
from cachemark.model.protocol_results import Groups, HeapWork, Operation, Sections, Timeline

N = TypeVar("N", int, float)
# The verdict compares the two.
_AGAIN, _SENT = "retransmits", "segments_sent"
_SUMS = (
    "max_in_flight", "queued", "unsent", "reconnects", "renewed", "failed_connects", "cpu_user_ns",
    "cpu_system_ns", "barriers", "overflow",
)  # fmt: skip
_SUMS_OF_A_KIND = (
    "attempts", "ok", "hits", "misses", "not_stored", "wrong_values", "keys", "value_bytes",
    "key_bytes", "busy_ns",
)  # fmt: skip


def merge(parts: list[Done]) -> Done:
    """Merge results: counts are added, histograms merged; the longest window counts."""
    if len(parts) == 1:
        return parts[0]
    merged = Done(
        phase=parts[0].phase,
        elapsed_ns=max(part.elapsed_ns for part in parts),
        send_elapsed_ns=max(part.send_elapsed_ns for part in parts),
        operations=merge_kinds([part.operations for part in parts]),
        send_lag=_merge_blobs([part.send_lag for part in parts]),
        # Only known as a whole if every worker reports it.
        generator_lag=_merge_blobs([part.generator_lag for part in parts])
        if all(p.generator_lag for p in parts)
        else None,
        timeline=_merge_timelines([part.timeline for part in parts]),
        sections=_merge_sections([part.sections for part in parts]),
        groups=_merge_groups([part.groups for part in parts]),
        lead_in=_merge_lead_ins([part.lead_in for part in parts]),
        heap=_merge_heaps([part.heap for part in parts]),
        # Each worker reports the whole of a cache that they share; the last to end saw most of it.
        store_bytes=max((p.store_bytes for p in parts if p.store_bytes is not None), default=None),
    )
    return msgspec.structs.replace(merged, **_sums(parts, _SUMS))


def _sums(parts: Sequence[msgspec.Struct], names: Sequence[str]) -> dict[str, int]:
    return {name: sum(getattr(part, name) for part in parts) for name in names}


def merge_slices(parts: list[SliceDone]) -> SliceDone:
    """Merge the workers' parts of a slice: counts are added; the time is the mean of all times.

    A worker without an operation adds no time.
    """
    played = [part for part in parts if part.ops + part.errors + part.lead_in_ops]
    count = max(1, len(played))
    return SliceDone(
        **_sums(parts, ("ops", "errors", "lead_in_ops", "half_ops")),
        elapsed_ns=round(sum(part.elapsed_ns for part in played) / count),
        half_ns=round(sum(part.half_ns for part in played) / count),
    )


def _merge_sections(parts: list[Sections | None]) -> Sections | None:
    """Merge section by section; None unless all workers have the same number and length."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or len({(p.length_ns, len(p.response)) for p in known}) != 1:
        return None
    return Sections(
        length_ns=known[0].length_ns,
        ok=_sum_columns([part.ok for part in known]),
        response=[
            _merge_blobs(list(blobs)) for blobs in zip(*[p.response for p in known], strict=True)
        ],
    )


def _merge_lead_ins(parts: list[dict[str, Operation] | None]) -> dict[str, Operation] | None:
    known = [part for part in parts if part is not None]
    return merge_kinds(known) if known else None


def _merge_groups(parts: list[Groups | None]) -> Groups | None:
    """Add up the groups; None unless all workers report groups of the same length."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or len({part.length for part in known}) != 1:
        return None
    return Groups(
        length=known[0].length,
        ok=sum(part.ok for part in known),
        time=_merge_blobs([part.time for part in known]),
    )


def _merge_heaps(parts: list[HeapWork | None]) -> HeapWork | None:
    """Add up each figure; None unless all workers report it."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    columns = {name: [getattr(p, name) for p in known] for name in HeapWork.__struct_fields__}
    return HeapWork(
        **{name: None if None in column else sum(column) for name, column in columns.items()}
    )


def _merge_timelines(timelines: list[Timeline | None]) -> Timeline | None:
    """Add up the slices; None unless each worker's slice length divides the longest one."""
    known = [timeline for timeline in timelines if timeline is not None]
    if len(known) < len(timelines):
        return None
    longest_ns = max(timeline.slice_ns for timeline in known)
    if any(longest_ns % timeline.slice_ns for timeline in known):
        return None
    return Timeline(
        slice_ns=longest_ns,
        ok=_sum_columns([_coarser(c.ok, longest_ns // c.slice_ns) for c in known]),
        response_ns=_sum_columns(
            [_coarser(c.response_ns, longest_ns // c.slice_ns) for c in known]
        ),
    )


def _coarser(slices: list[int], factor: int) -> list[int]:
    return [sum(slices[at : at + factor]) for at in range(0, len(slices), factor)]


def _sum_columns(columns: list[list[int]]) -> list[int]:
    return [sum(values) for values in zip_longest(*columns, fillvalue=0)]


def merge_kinds(parts: Sequence[dict[str, Operation]]) -> dict[str, Operation]:
    """Merge the results by kind: counts are added, histograms merged."""
    kinds = sorted({kind for part in parts for kind in part})
    return {
        kind: _merge_operations([part[kind] for part in parts if kind in part]) for kind in kinds
    }


def _merge_operations(parts: list[Operation]) -> Operation:
    kinds = dict.fromkeys(kind for part in parts for kind in part.errors)
    return Operation(
        **_sums(parts, _SUMS_OF_A_KIND),
        errors={kind: sum(part.errors.get(kind, 0) for part in parts) for kind in kinds},
        response=_merge_blobs([part.response for part in parts]),
        service=_merge_blobs([part.service for part in parts]),
    )


def _merge_blobs(blobs: list[str | None]) -> str | None:
    merged = histogram.merge_encoded(blobs)
    return histogram.encode(merged) if merged else None


def worst_noise(hosts: Sequence[HostNoise]) -> HostNoise:
    """The worst value of each figure over several hosts; None only if no host could read it."""
    names = {name for noise in hosts for name in noise.counters}
    steps = [noise.clock_step_ns for noise in hosts if noise.clock_step_ns is not None]
    logs = [noise.kernel_log for noise in hosts if noise.kernel_log is not None]
    return msgspec.structs.replace(
        hosts[0],
        cpus=_most([noise.cpus for noise in hosts]),
        steal_percent=_most([noise.steal_percent for noise in hosts]),
        foreign_cpu_percent=_most([noise.foreign_cpu_percent for noise in hosts]),
        load_1min=max(noise.load_1min for noise in hosts),
        window_ns=min((noise.window_ns for noise in hosts if noise.window_ns), default=0),
        counters={name: _most_counted(name, hosts) for name in names} | _worst_network(hosts),
        waited_percent=_most([noise.waited_percent for noise in hosts]),
        clock_step_ns=max(steps, key=abs, default=None),
        longest_pause_ns=_most([noise.longest_pause_ns for noise in hosts]),
        paused_ns=max(noise.paused_ns for noise in hosts),
        longest_halt_ns=_most([noise.longest_halt_ns for noise in hosts]),
        stopped_ns=max(noise.stopped_ns for noise in hosts),
        server_stopped_ns=max(noise.server_stopped_ns for noise in hosts),
        mhz=_frequency_range(hosts),
        kernel_log={name: lines for log in logs for name, lines in log.items()} if logs else None,
    )


def _most(values: Sequence[N | None]) -> N | None:
    return max((value for value in values if value is not None), default=None)


def _most_counted(name: str, hosts: Sequence[HostNoise]) -> int:
    return max(noise.counters[name] for noise in hosts if name in noise.counters)


def _worst_network(hosts: Sequence[HostNoise]) -> dict[str, int]:
    """Both counters of the host that retransmitted the largest part of its segments.

    They must be from one host: a client's host sends few segments, the server's host many.
    """
    known = [noise.counters for noise in hosts if {_AGAIN, _SENT} <= noise.counters.keys()]
    worst = max(known, key=lambda of: of[_AGAIN] / max(1, of[_SENT]), default={})
    return {name: worst[name] for name in (_AGAIN, _SENT) if worst}


def _frequency_range(hosts: Sequence[HostNoise]) -> tuple[float, float] | None:
    known = [noise.mhz for noise in hosts if noise.mhz]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None
