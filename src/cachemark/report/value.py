"""What a report says, before it has a form."""

from __future__ import annotations

from typing import Literal

import msgspec

from cachemark.analysis.statistics import CellSummary, Comparison, Metric
from cachemark.model.outcome import Cell
from cachemark.runs.store import RunHeader


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A client's line: its summary, and how it compares with the fastest of its group."""

    summary: CellSummary
    comparison: Comparison | None
    fastest: bool


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The clients that did the same work: one server, workload and load; fastest first.

    In a closed loop the fastest has the most ops/s. In an open loop all are given the same rate, so
    the fastest has the least p99. `lead` compares the two that a reader would choose from, `itself`
    a client that was played twice with itself.
    """

    server: str
    server_version: str
    workload: str
    load: str
    metric: Metric
    rows: list[Row]
    lead: Comparison | None
    itself: Comparison | None = None


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """The second that ends so many seconds after the window began.

    `server_cpus` is how many CPUs the server kept busy in it.
    """

    second: int
    ops_per_s: float | None = None
    server_cpus: float | None = None
    server_rss_bytes: int | None = None


class TrialRow(msgspec.Struct, frozen=True, kw_only=True):
    """One trial: what became of it, its rate and its course if it counts, what disturbed it."""

    index: int
    block: int
    cell: Cell
    verdict: str
    reasons: list[str]
    ops_per_s: float | None
    started_at: str
    wall_ms: int
    steal_percent: float | None
    foreign_cpu_percent: float | None
    course: list[Moment] = []

    def is_of(self, group: Group) -> bool:
        """Whether the trial is one of a group's."""
        cell = self.cell
        return (cell.server, cell.workload, cell.load) == (group.server, group.workload, group.load)


class Absence(msgspec.Struct, frozen=True, kw_only=True):
    """A client, or one of its cells, that could not run: why, and how to get it."""

    what: str
    reason: str
    remedy: str


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of a section as a plot has it: whose, of what measure, published or measured."""

    who: str
    measure: str
    value: float
    published: bool


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part that only some suites have: a table of its own, and its figures if they are plotted.

    `topic` is whether it is about what others published, the workers themselves, the audit of
    servers and levels, or single trials; `unit` is that of all its bars, and `more_is_better` says
    which of them is the best; `prose`: its columns are text, not figures.
    """

    title: str
    topic: Literal["published", "loops", "audit", "within"] = "published"
    columns: list[str]
    rows: list[list[str]]
    notes: list[str]
    unit: str = ""
    more_is_better: bool = True
    bars: list[Bar] = []
    prose: bool = False


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
    trials: list[TrialRow] = []
