"""What a report says, before it has a form."""

from __future__ import annotations

import msgspec

from cachemark.statistics import CellSummary, Comparison, Metric
from cachemark.store import RunHeader


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A client's line: its summary, and how it compares with the fastest of its group."""

    summary: CellSummary
    comparison: Comparison | None
    fastest: bool


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The clients that did the same work: one server, workload and load; fastest first.

    In a closed loop the fastest has the most ops/s. In an open loop all are given the same rate, so
    the fastest has the least p99. `lead` compares the two that a reader would choose from.
    """

    server: str
    server_version: str
    workload: str
    load: str
    metric: Metric
    rows: list[Row]
    lead: Comparison | None


class Absence(msgspec.Struct, frozen=True, kw_only=True):
    """A client, or one of its cells, that could not run: why, and how to get it."""

    what: str
    reason: str
    remedy: str


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part that only some suites have: a table of its own."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A run, ready to be shown."""

    header: RunHeader
    answers: list[str]
    groups: list[Group]
    absences: list[Absence]
    missing: list[CellSummary]
    rejected: list[str]
    notes: list[str]
    environment: list[str]
    sections: list[Section] = []
