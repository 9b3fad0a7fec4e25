"""The contents of a report, before they are rendered."""

from typing import Literal

import msgspec

from cachemark.analysis.rounds.answers import Answers
from cachemark.analysis.statistics import CellSummary, Comparison, Interval
from cachemark.model.outcome import Cell
from cachemark.model.run_header import RunHeader

# The kind of the rows of a group.
GroupKind = Literal["clients", "servers"]
# The figure by which a group is ranked.
Metric = Literal["rate", "p99"]
# The version of the fields of a report: a new number where one, or its meaning, changes.
SCHEMA = 1
# The version of the columns of a search's rows.
SEARCH_ROWS_VERSION = 1
# What a search has left to play: steps, or further blocks that would settle an answer.
Left = Literal["", "rest", "blocks"]
# The subject of a section.
Topic = Literal[
    "search", "defaults", "published", "loops", "audit", "within", "rounds", "servers", "hosts"
]


def ranked_figure(summary: CellSummary, metric: Metric) -> Interval | None:
    """The figure by which a group is ranked; None if the cell does not have it."""
    total = summary.total
    if total is None:
        return None
    if metric == "rate":
        return total.rate
    return total.response.intervals.get(99.0) if total.response else None


class ClientRow(msgspec.Struct, frozen=True, kw_only=True):
    """A client (or server) of a group: its summary, and its comparison with the fastest one.

    `name` is what tells it from the others. `series` is its number in the experiment, which gives
    it the same style in every plot. The native client, the yardstick of libraries, is grey.
    """

    name: str
    series: int | None
    yardstick: bool
    summary: CellSummary
    comparison: Comparison | None
    fastest: bool


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The clients that did the same work on one server; or the servers of the only client.

    The fastest one is first. `server` is empty in a group of servers, `client` in one of clients.
    In a closed loop, the fastest client has the highest rate. In an open loop, all clients have the
    same rate, so the fastest one has the lowest p99. `lead` is the first relative to the second;
    `itself` is the A/A test, and `itself_bound` the factor by which the instrument differs from
    itself. `no_first`: why no first is named, although there
    are several to choose from. `set_leaders` are then those that are first of a set of rounds.
    `coloured`: there is a colour of its own for each client (or server) of the experiment.
    """

    kind: GroupKind = "clients"
    server: str
    client: str = ""
    server_version: str
    workload: str
    load: str
    metric: Metric
    rows: list[ClientRow]
    lead: Comparison | None
    itself: Comparison | None = None
    itself_bound: float = 1.0
    no_first: str = ""
    set_leaders: list[str] = []
    coloured: bool = True

    @property
    def common(self) -> str:
        """The name that all rows share: the server, or the client of a group of servers."""
        return self.server if self.kind == "clients" else self.client

    @property
    def heading(self) -> str:
        """The heading of the column of the rows' names."""
        return self.kind.removesuffix("s")

    def name_of(self, cell: Cell) -> str:
        """The name of a cell's row in this group."""
        return cell.client if self.kind == "clients" else cell.server

    def has(self, cell: Cell) -> bool:
        """Whether a cell did the work of this group."""
        common = cell.server if self.kind == "clients" else cell.client
        return (common, cell.workload, cell.load) == (self.common, self.workload, self.load)


class TimelinePoint(msgspec.Struct, frozen=True, kw_only=True):
    """One second of a window; `second` is its end, counted from the start of the window.

    `server_cpus` is the server's CPU use in this second, in CPUs. `hit_ratio` covers the keys that
    it was asked for in this second.
    """

    second: int
    ops_per_s: float | None = None
    server_cpus: float | None = None
    server_rss_bytes: int | None = None
    hit_ratio: float | None = None


class TrialRow(msgspec.Struct, frozen=True, kw_only=True):
    """One trial: its verdict and noise; its rate and its timeline if it is valid."""

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
    timeline: list[TimelinePoint] = []


class Absence(msgspec.Struct, frozen=True, kw_only=True):
    """A client, a server, or some cells that could not be played: the reason and the remedy.

    `cells` is the number of cells that were not played for this reason.
    """

    what: str
    reason: str
    remedy: str
    cells: int = 1


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of a section for a plot: its client, its measure, and whether it was published."""

    label: str
    measure: str
    value: float
    published: bool


class RatePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a search for a plot: what was offered, and the percentile of the objective.

    `series` is the number of the client's colour, as in a row of a group.
    """

    label: str
    rate: float
    percentile_ns: int
    series: int | None


class CapacityPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The highest rate that searches found with a number of connections, for one line of a plot."""

    label: str
    connections: int
    rate: float
    series: int | None


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the report that not every run has: a table, and figures for plots.

    `topic` says what it is about: a search for a rate, the libraries' own settings, published
    figures, the workers' loops, the audit, single trials, sittings, servers, or hosts. `unit` is
    the unit of all bars, `more_is_better` their direction. With `prose`, columns are text.
    `rate_points` are the steps of a search, whose percentile is the `unit`; `capacity_points` are
    the answers of several searches. `client_lines` has a line about some clients, for the last
    screen of a run.
    """

    title: str
    topic: Topic = "published"
    columns: list[str]
    rows: list[list[str]]
    notes: list[str]
    client_lines: dict[str, str] = {}
    unit: str = ""
    more_is_better: bool = True
    bars: list[Bar] = []
    rate_points: list[RatePoint] = []
    capacity_points: list[CapacityPoint] = []
    prose: bool = False


class RatesSection(Section, frozen=True, kw_only=True):
    """The rates that a search found, which the last screen of a run shows, too."""


class CarryOverSection(Section, frozen=True, kw_only=True):
    """Carry-over: a client's effect on the slices after its own; the sittings have its plot."""


class SearchRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line about a search for the highest rate: what was found, or one trial of it.

    `row` says which: `found` the answer for a cell, `search` that of one of its searches,
    `closed-loop` and `rate` a trial. `rate_per_s` is what was found or offered, with the bounds of
    the interval of an answer; `ops_per_s` is what succeeded, and `percentile_ns` the percentile of
    the objective. `block` counts from 1. The field names are the columns of the CSV; whoever
    changes their meaning raises SEARCH_ROWS_VERSION.
    """

    schema_version: int
    client: str
    library: str
    library_version: str
    server: str
    server_version: str
    workload: str
    load: str
    objective: str
    row: Literal["found", "search", "closed-loop", "rate"]
    block: int | None = None
    rate_per_s: float | None = None
    rate_per_s_low: float | None = None
    rate_per_s_high: float | None = None
    ops_per_s: float | None = None
    percentile_ns: int | None = None
    verdict: str
    reason: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a run's report. `rounds`: what its sittings answer, if it has any.

    `turns` says how long their slices were.

    `unverified` has a line for each server that did not confirm all counts of the clients.
    `searched` has what a search found and tried, `left` what it has not yet; other runs have none.
    """

    header: RunHeader
    answers: list[str]
    rounds: Answers | None = None
    turns: str = ""
    groups: list[Group] = []
    absences: list[Absence] = []
    missing: list[CellSummary] = []
    rejected: list[str] = []
    unverified: list[str] = []
    notes: list[str] = []
    environment: list[str] = []
    sections: list[Section] = []
    trials: list[TrialRow] = []
    searched: list[SearchRow] = []
    left: Left = ""

    @property
    def valid_trials(self) -> str:
        """Such as `105 of 108`: valid trials of the played ones."""
        played = [trial.verdict for trial in self.trials if trial.verdict != "unsupported"]
        return f"{played.count('VALID')} of {len(played)}"

    @property
    def validity(self) -> str:
        """Such as `105 of 108 valid`; `none played` where there is no trial to count."""
        played = any(trial.verdict != "unsupported" for trial in self.trials)
        return f"{self.valid_trials} valid" if played else "none played"

    @property
    def warnings(self) -> list[str]:
        """Notes for a reader who publishes a figure."""
        return [*self.unverified, *self.notes]
