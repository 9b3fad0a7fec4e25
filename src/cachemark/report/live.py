"""Events → what a page shows: the position, a timeline of each cell, the rankings, the problems."""

import msgspec

from cachemark.analysis.statistics import Interval, absolute_figure
from cachemark.model.events import (
    AnswersTold,
    Ended,
    EventLine,
    Position,
    Ranked,
    RankedPlace,
    Refused,
    SecondEnded,
    Started,
    TrialEnded,
)

MAX_POINTS = 600
# More rows would not fit into 4 kB, and no screen shows them.
ROWS_IN_A_MESSAGE = 12
_MAX_PROBLEMS = 50


class LiveRow(msgspec.Struct, frozen=True, kw_only=True):
    """A client in a ranking: its figure with its interval, and how many of its trials count."""

    name: str
    is_first: bool
    value: float | None
    low: float | None
    high: float | None
    valid: int
    trials: int
    errors: int
    p99: float | None
    client_cpu_us: float | None
    server_cpu_us: float | None
    server_rss: float | None


class LiveRanking(msgspec.Struct, frozen=True, kw_only=True):
    """The clients that did the same work, best first.

    `in_turns`: the figures are the estimates of the answers, and an interval is that of the ratio
    to the first. Otherwise figures are means.
    """

    title: str
    by_rate: bool
    in_turns: bool
    rows: list[LiveRow]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A reason why trials do not count, and how many they are."""

    cell: str
    verdict: str
    reason: str
    count: int


class Point(msgspec.Struct, frozen=True, array_like=True):
    """A block of a cell, or a second of a drive: its number, seconds since the beginning, figures.

    Times are in ns.
    """

    cell: int
    block: int
    seconds: float
    rate: float | None
    p50: float | None
    p99: float | None


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """The noise of the machine in the last trial and in the worst one."""

    steal_percent: float = 0.0
    foreign_cpu_percent: float = 0.0
    worst_foreign_cpu_percent: float = 0.0


class LiveState:
    """A run, as its events tell it."""

    def __init__(self) -> None:
        self.last_id = 0
        # The last event that changed more than the position.
        self.changed_id = 0
        self.began_at = 0.0
        self.started: Started | None = None
        self.ended: Ended | None = None
        self.position: Position | None = None
        self.answers: list[str] = []
        self.refused: list[str] = []
        self.cells: list[tuple[str, ...]] = []
        self.noise: Noise | None = None
        self._trials: dict[int, list[TrialEnded]] = {}
        self._points: list[tuple[int, Point]] = []
        self._problems: dict[tuple[str, str, str], int] = {}
        self._last_second: SecondEnded | None = None
        self._ranked: dict[str, tuple[bool, list[RankedPlace]]] = {}

    def apply(self, line: EventLine) -> None:
        """Take the next event into account."""
        self.last_id = line.id
        self.began_at = self.began_at or line.at
        event = line.event
        if not isinstance(event, Position):
            self.changed_id = line.id
        if isinstance(event, Started):
            self.started, self.ended = event, None
        elif isinstance(event, Ended):
            self.ended = event
        elif isinstance(event, Position):
            self.position = event
        elif isinstance(event, AnswersTold):
            self.answers = event.lines
        elif isinstance(event, Refused):
            self.refused = event.lines
        elif isinstance(event, SecondEnded):
            self._apply_second(line, event)
        elif isinstance(event, Ranked):
            _, places = self._ranked.get(event.title, (True, []))
            self._ranked[event.title] = event.by_rate, [*places[: event.at], *event.places]
        else:
            self._apply_trial(line, event)

    def _apply_second(self, line: EventLine, second: SecondEnded) -> None:
        self._last_second = second
        self._add_point(line, second.cell, second.second - 1, second)

    def _apply_trial(self, line: EventLine, trial: TrialEnded) -> None:
        self._trials.setdefault(self._number(trial.cell), []).append(trial)
        if self._last_second is None:  # the points of a drive are its seconds
            self._add_point(line, trial.cell, trial.block, trial)
        if trial.reason or trial.verdict != "VALID":
            key = " · ".join(trial.cell), trial.verdict, trial.reason
            self._problems[key] = self._problems.get(key, 0) + 1
        if trial.foreign_cpu_percent is not None:
            foreign = trial.foreign_cpu_percent
            worst = self.noise.worst_foreign_cpu_percent if self.noise else 0.0
            self.noise = Noise(
                steal_percent=trial.steal_percent or 0.0,
                foreign_cpu_percent=foreign,
                worst_foreign_cpu_percent=max(foreign, worst),
            )

    def _number(self, names: list[str]) -> int:
        """The number of a cell, which is new if it has none."""
        cell = tuple(names)
        if cell not in self.cells:
            self.cells.append(cell)
        return self.cells.index(cell)

    def _add_point(
        self, line: EventLine, names: list[str], block: int, of: TrialEnded | SecondEnded
    ) -> None:
        seconds = round(line.at - self.began_at, 1)
        point = Point(self._number(names), block, seconds, of.rate, of.p50, of.p99)
        self._points.append((line.id, point))

    def problems(self) -> list[Problem]:
        """Why trials do not count; the latest reasons, if there are many."""
        recent = [
            Problem(cell=cell, verdict=verdict, reason=reason, count=count)
            for (cell, verdict, reason), count in self._problems.items()
        ]
        return recent[-_MAX_PROBLEMS:]

    def points_after(self, last_id: int) -> list[Point]:
        """The points of the events after a number."""
        points: list[Point] = []
        for number, point in reversed(self._points):
            if number <= last_id:
                break
            points.append(point)
        return points[::-1]

    def timeline(self) -> list[Point]:
        """All points; at most MAX_POINTS of each cell, which are then means of several blocks."""
        blocks = 1 + max((point.block for _, point in self._points), default=0)
        merged = -(-blocks // MAX_POINTS)
        if merged == 1:
            return [point for _, point in self._points]
        parts: dict[tuple[int, int], list[Point]] = {}
        for _, point in self._points:
            parts.setdefault((point.cell, point.block // merged), []).append(point)
        return [
            Point(
                cell,
                part * merged,
                points[0].seconds,
                _mean([point.rate for point in points]),
                _mean([point.p50 for point in points]),
                _mean([point.p99 for point in points]),
            )
            for (cell, part), points in parts.items()
        ]

    def rankings(self) -> list[LiveRanking]:
        """The rankings: by rate, or, where all clients are offered the same rate, by p99."""
        if self.started is not None and self.started.unit == "sitting":
            return self._rankings_in_turns()
        if self._last_second is not None and not self._trials:
            return [self._ranking_of_seconds(self._last_second)]
        groups: dict[str, list[LiveRow]] = {}
        by_rate = self.started is None or self.started.ranks_by_rate
        for number, (client, *work) in enumerate(self.cells):
            trials = self._trials.get(number, [])
            interval = _mean_of_trials(trials, "rate" if by_rate else "p99")
            groups.setdefault(" · ".join(work), []).append(_row(client, trials, interval))
        return [
            LiveRanking(
                title=title,
                by_rate=by_rate,
                in_turns=False,
                rows=sorted(rows, key=lambda row: _order(row, by_rate)),
            )
            for title, rows in groups.items()
        ]

    def _ranking_of_seconds(self, last: SecondEnded) -> LiveRanking:
        """The mean rate of a drive so far. A mean of percentiles would not be the percentile."""
        client, *work = last.cell
        rate = _mean([point.rate for _, point in self._points])
        row = _row(client, [], Interval(value=rate, low=None, high=None) if rate else None)
        rows = [msgspec.structs.replace(row, errors=last.errors)]
        return LiveRanking(title=" · ".join(work), by_rate=True, in_turns=False, rows=rows)

    def _rankings_in_turns(self) -> list[LiveRanking]:
        """Rankings as the run answers them; means of sittings could contradict the report."""
        numbers = {cell: number for number, cell in enumerate(self.cells)}
        return [
            LiveRanking(
                title=title,
                by_rate=by_rate,
                in_turns=True,
                rows=[
                    _row(
                        place.name,
                        self._trials.get(numbers.get(tuple(place.cell), -1), []),
                        Interval(value=place.value, low=place.low, high=place.high),
                        is_first=place.is_first,
                    )
                    for place in places
                ],
            )
            for title, (by_rate, places) in self._ranked.items()
        ]


def _order(row: LiveRow, by_rate: bool) -> float:
    if row.value is None:
        return float("inf")
    return -row.value if by_rate else row.value


def _mean_of_trials(trials: list[TrialEnded], metric: str) -> Interval | None:
    values = _values(trials, metric)
    return absolute_figure(values) if values else None


def _row(
    name: str, trials: list[TrialEnded], interval: Interval | None, *, is_first: bool = False
) -> LiveRow:
    return LiveRow(
        name=name,
        is_first=is_first,
        value=interval.value if interval else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        valid=sum(trial.verdict == "VALID" for trial in trials),
        trials=len(trials),
        errors=sum(trial.errors for trial in trials),
        **{
            name: _mean(_values(trials, name))
            for name in ("p99", "client_cpu_us", "server_cpu_us", "server_rss")
        },
    )


def _values(trials: list[TrialEnded], name: str) -> list[float]:
    return [value for trial in trials if (value := getattr(trial, name))]


def _mean(values: list[float | None] | list[float]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
