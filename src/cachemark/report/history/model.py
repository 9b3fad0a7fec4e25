"""The contents of a history, before they are rendered."""

from typing import Literal

import msgspec

from cachemark.analysis.statistics import Interval
from cachemark.model.outcome import Cell

# The version of the fields of a history: a new number where one, or its meaning, changes.
SCHEMA = 1
# A grid of trials, or what clients do when their server fails.
RunKind = Literal["grid", "resilience"]


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run of the store; `problem` is the reason if it cannot be read.

    `played` are the trials of its plan, without unsupported ones and replays. `name` comes from
    the user. `first` and `answer` come from its report, and are empty until it has one. `kind`:
    what it played. Of a run of `resilience`, `planned` and `played` are cells, which are never
    `valid`: they have verdicts of their own.
    """

    folder: str
    name: str = ""
    kind: RunKind = "grid"
    created_at: str = ""
    experiment: str = ""
    first: str = ""
    answer: str = ""
    cachemark: str = ""
    host: str = ""
    planned: int = 0
    played: int = 0
    replays: int = 0
    valid: int = 0
    problem: str = ""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A cell in one run: versions, and the figures of its valid trials.

    `trials` counts the plan's trials; one is `valid` too if a replay of it is. `evictions` is over
    all valid trials, by the servers' own counters; None if a server does not report them.

    `ratio_to_previous` is against the entry before it on the same machine, in the first of the
    figures. It has no interval: the trials of one run do not show how much runs differ.
    """

    folder: str
    created_at: str
    cachemark: str
    host: str
    machine: str
    library_version: str
    runtime: str
    server_version: str
    trials: int
    replays: int
    valid: int
    reason: str
    evictions: int | None = None
    figures: dict[str, Interval | None]
    ratio_to_previous: float | None = None


class CellHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A cell over time; `work` distinguishes cells with the same name but different work."""

    cell: Cell
    work: str
    figures: list[str]
    entries: list[Entry]


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of cells; or the runs, if no cells were requested."""

    lines: list[CellHistory]
    runs: list[RunRow] = []
    notes: list[str] = []
