"""The events of a run, as lines of JSON. A line is shorter than 4 kB."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from cachemark.model.errors import DECODE_ERRORS
from cachemark.model.foreign_text import clean_all

EVENTS_FILE = "events.jsonl"
MAX_LINE_BYTES = 4000
MAX_NAME = 200
MAX_REASON = 600


# A cell's label: its client, then its work.
CellNames = Annotated[list[str], Meta(min_length=1, max_length=8)]


class Started(msgspec.Struct, frozen=True, kw_only=True, tag="started"):
    """The run's process has begun or resumed the run, whose parts are `unit`s.

    `process_start` distinguishes the process from a later one with the same id.
    """

    pid: int
    process_start: str
    unit: str
    total: int
    ranks_by_rate: bool


class Position(msgspec.Struct, frozen=True, kw_only=True, tag="position"):
    """Where the run is: `part` is the played fraction of the current trial or sitting."""

    number: int
    total: int
    what: str
    part: float = 0.0


class TrialEnded(msgspec.Struct, frozen=True, kw_only=True, tag="trial"):
    """A trial has ended. Only a valid trial has figures; times are in ns."""

    cell: CellNames
    block: int
    verdict: str
    reason: str = ""
    rate: float | None = None
    p50: float | None = None
    p99: float | None = None
    client_cpu_us: float | None = None
    server_cpu_us: float | None = None
    server_rss: float | None = None
    errors: int = 0
    steal_percent: float | None = None
    foreign_cpu_percent: float | None = None


class SecondEnded(msgspec.Struct, frozen=True, kw_only=True, tag="second"):
    """A second of a drive has ended. `errors` counts since its window began; times are in ns."""

    cell: CellNames
    second: int
    rate: float
    p50: float | None = None
    p99: float | None = None
    errors: int = 0


class AnswersTold(msgspec.Struct, frozen=True, kw_only=True, tag="answers"):
    """The answers so far, in words."""

    lines: list[str]


class RankedPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A cell in a ranking by turns: its figure, with the interval of its ratio to the first.

    The figure is adjusted to the level that all cells have in common. A yardstick, such as the
    native client, can stand above the first: the first is the best client to choose.
    """

    name: str
    cell: list[str]
    value: float
    is_first: bool = False
    low: float | None = None
    high: float | None = None


class Ranked(msgspec.Struct, frozen=True, kw_only=True, tag="ranked"):
    """A part of the ranking of a question, after some blocks of sittings: the places from `at`.

    These are the estimates of the answers, not the means of the trials.
    """

    title: str
    by_rate: bool
    at: int
    places: list[RankedPlace]


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """Exclusions by the audit, a line for each reason."""

    lines: list[str]


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """The run's process has ended the run, or was interrupted."""

    interrupted: bool


Event = Started | Position | TrialEnded | SecondEnded | AnswersTold | Ranked | Refused | Ended


class EventLine(msgspec.Struct, frozen=True, kw_only=True):
    """An event with its number, which counts from 1, and its time in seconds since the epoch."""

    id: int
    at: float
    event: Event


_decoder = msgspec.json.Decoder(EventLine)


def to_line(line: EventLine) -> bytes | None:
    """The line with its end; None if it would be too long."""
    encoded = msgspec.json.encode(line) + b"\n"
    return encoded if len(encoded) <= MAX_LINE_BYTES else None


def from_line(text: bytes) -> EventLine | None:
    """The event of a line, its names made harmless; None if it is no event, in an edited file."""
    try:
        return clean_all(_decoder.decode(text))
    except DECODE_ERRORS:
        return None


def fitting(lines: Sequence[str]) -> list[str]:
    """The lines that fit into an event, and how many more there are."""
    fit: list[str] = []
    left = MAX_LINE_BYTES // 2
    for line in lines:
        left -= len(line.encode("utf-8", "replace")) + 3
        if left < 0:
            return [*fit, f"… and {len(lines) - len(fit)} more"]
        fit.append(line)
    return fit
