"""Requests for slices that hosts play together, and their answers."""

from __future__ import annotations

import msgspec

from cachemark.model.protocol import SliceDone


class PlannedSlice(msgspec.Struct, frozen=True, kw_only=True):
    """A slice of an arm, and when it starts by the clock of the host that plays it."""

    arm: int
    start_unix_ns: int
    length_us: int
    lead_in_us: int


class PlayedSlice(msgspec.Struct, frozen=True, kw_only=True):
    """A slice on one host. `done` is None if it was not played: it was too late, or the clock had
    been set.

    `late_ns`: how long after the planned start its workers were asked. `stepped_ns`: how far the
    clock had been set since the first slice of the request. `wall_ns`: from the planned start to
    the last answer. `paused_ns`: how much longer than planned it was, if a worker was stopped in
    it or the host paused. CPU times are those of `Slices`; -1: not available.
    """

    late_ns: int
    stepped_ns: int = 0
    done: SliceDone | None = None
    wall_ns: int = 0
    paused_ns: int = 0
    worker_cpu_ns: int = -1
    server_cpu_ns: int = -1
    idle_cpu_ns: int = -1
    steal_ns: int = 0


class ArmFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why an arm's workers play no more slices on a host."""

    arm: int
    text: str
    remedy: str = ""


class HostSlices(msgspec.Struct, frozen=True, kw_only=True):
    """The slices that a host played of those it was asked for, one entry for each."""

    played: list[PlayedSlice]
    failures: list[ArmFailure] = []


class TurnCost(msgspec.Struct, frozen=True, kw_only=True):
    """Wall and CPU time of an empty slice of an arm's workers, the medians of a few."""

    wall_ns: int
    cpu_ns: int
