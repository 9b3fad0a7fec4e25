"""The libraries' own default settings: their differences, and their cost.

A client `X@defaults` is the library as it ships. It is compared with `X`, which has the settings
that all clients share, if that was played too.
"""

import statistics
from collections.abc import Mapping, Sequence

import msgspec

from cachemark.analysis.number_format import count_of, size
from cachemark.analysis.rounds.pairs import (
    PRIMARY_FIGURES,
    estimate_pair,
    primary_figure,
    read_sittings,
)
from cachemark.analysis.rounds.questions import stop_rule
from cachemark.analysis.rounds.texts import ratio_words
from cachemark.analysis.statistics import CellSummary
from cachemark.model.client_name import parse_client_name
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.server_stats import ServerStats
from cachemark.report.model import Section

TITLE = "How the defaults differ"
_UNKNOWN = "–"
_RATIO_NOTE = (
    "Of common: the figure with the library's own settings ÷ the figure with the settings "
    "that all clients share. Each interval belongs to its own pair, without a correction for the "
    "number of rows."
)
_RATIO_HEADING = {"rate": "of common", "p99": "p99 of common"}


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """A library as it ships, and the same library with the common settings, if it was played."""

    own: CellSummary
    common: CellSummary | None
    settings: str
    ratio: tuple[str, str]
    stored: str
    stored_common: str


def sections(
    experiment: Experiment,
    summaries: Sequence[CellSummary],
    outcomes: Sequence[Outcome],
    own_settings: Mapping[str, str],
) -> list[Section]:
    """A table for each work and server that a client with `@defaults` played; else empty."""
    by_cell = {summary.cell: summary for summary in summaries}
    ratios = _Ratios(experiment, outcomes)
    tables: dict[tuple[str, str, str], list[_Row]] = {}
    for cell, summary in by_cell.items():
        name = parse_client_name(cell.client)
        if not name.own_settings or name.again or summary.total is None:
            continue
        shared = name.with_shared_settings
        other = by_cell.get(msgspec.structs.replace(cell, client=shared))
        common = other if other and other.total else None
        row = _Row(
            own=summary,
            common=common,
            settings="" if name.version else own_settings.get(name.id, ""),
            ratio=ratios.of(cell, common.cell) if common else ("", ""),
            stored=_stored(cell, outcomes),
            stored_common=_stored(common.cell, outcomes) if common else "",
        )
        tables.setdefault((cell.workload, cell.load, cell.server), []).append(row)
    return [_section(place, rows, experiment) for place, rows in tables.items()]


def default_lines(of: Sequence[Section]) -> list[str]:
    """A line for each client with `@defaults`: its own settings, and the bytes that it stored."""
    lines: dict[str, str] = {}
    for section in of:
        for client, line in section.client_lines.items():
            lines.setdefault(client, line)
    return list(lines.values())


def _settings_line(row: _Row) -> str:
    return f"Own settings of {row.own.cell.client}: {row.settings}."


def _bytes_of_both(row: _Row) -> str:
    if not (row.stored and row.stored_common):
        return ""
    return f" It stored {row.stored} for each item; {row.stored_common} with the common settings."


def _section(place: tuple[str, str, str], rows: Sequence[_Row], experiment: Experiment) -> Section:
    workload, load, server = place
    columns = ["client", _RATIO_HEADING[_figure(load, experiment)], "over", "client CPU/op",
               "common CPU/op", "bytes/item", "common bytes/item"]  # fmt: skip
    cells = [
        [row.own.cell.client, *row.ratio, _cpu(row.own), _cpu(row.common), row.stored,
         row.stored_common]
        for row in rows
    ]  # fmt: skip
    # Without a comparison, or a server that reports its bytes, there is nothing to show.
    shown = [number for number in range(len(columns)) if any(row[number] for row in cells)]
    options = any("?" in row.own.cell.client for row in rows)
    known = [row for row in rows if row.settings]
    return Section(
        title=f"{TITLE}: {workload} · {load} · {server}",
        topic="defaults",
        columns=[columns[number] for number in shown],
        rows=[[row[number] or _UNKNOWN for number in shown] for row in cells],
        notes=[
            *map(_settings_line, known),
            *(["Options of a client replace its own settings."] if options else []),
            *([_RATIO_NOTE] if "over" in (columns[number] for number in shown) else []),
        ],
        client_lines={
            row.own.cell.client: f"{_settings_line(row)}{_bytes_of_both(row)}" for row in known
        },
    )


def _figure(load: str, experiment: Experiment) -> str:
    closed = any(of.name == load and of.schedule == "closed" for of in experiment.loads)
    return primary_figure(closed=closed)


class _Ratios:
    """The comparisons of defaults with common settings in one run. Its sittings are read once."""

    def __init__(self, experiment: Experiment, outcomes: Sequence[Outcome]) -> None:
        self._experiment, self._rule = experiment, stop_rule(experiment)
        self._sittings = read_sittings(outcomes, PRIMARY_FIGURES)

    def of(self, own: Cell, common: Cell) -> tuple[str, str]:
        """Defaults / common with its interval, and how much it is based on; empty if unknown."""
        figure = _figure(own.load, self._experiment)
        estimated = estimate_pair(self._sittings, own, common, figure)
        if estimated.estimate is None:
            return "", ""
        scope = "within " if estimated.scope == "within" else ""
        over = f"{scope}{count_of(estimated.sittings, self._rule.unit)}"
        return ratio_words(estimated.estimate.ratio(self._rule.confidence)), over


def _cpu(of: CellSummary | None) -> str:
    return f"{of.client_cpu_us.value:.1f} µs" if of and of.client_cpu_us else ""


def _stored(cell: Cell, outcomes: Sequence[Outcome]) -> str:
    """Bytes of the server for each item after the window; empty if it does not report them.

    The total would also tell how many keys the faster of the two had stored.
    """
    read = [
        stored / items
        for outcome in outcomes
        if outcome.trial.cell == cell and outcome.verdict == "VALID"
        for stats in [ServerStats(outcome.stats_after)]
        if (stored := stats.number("bytes")) and (items := stats.number("curr_items"))
    ]
    return size(statistics.fmean(read)) if read else ""
