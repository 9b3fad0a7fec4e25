"""The Java original's published figures beside JMH's of today: the same modes and units."""

from collections.abc import Sequence

import msgspec

from cachemark.analysis.statistics import min_sample_size
from cachemark.model.client_name import parse_client_name
from cachemark.model.jmh import ORIGINAL, JmhMeasurement, JmhSettings, Result
from cachemark.model.published import Page, PublishedTable, Row, published_files
from cachemark.report.model import Bar, Section
from cachemark.report.originals import sample_times

_SUITE = "java-clients"
_OPERATIONS = {"set-get": "set-get", "multiget": "mget"}
_US = 1000.0
_ABSENT = "–"
_MEASURE = "JMH's score"


class _Found(msgspec.Struct, frozen=True):
    """A result of JMH, and the client as it was named."""

    client: str
    result: Result


def sections(measured: Sequence[JmhMeasurement], settings: JmhSettings) -> list[Section]:
    """The published tables of which a benchmark was played; none for other work. Pure."""
    if not plays_original(settings):
        return []
    found = [_Found(each.client, result) for each in measured for result in each.results]
    tables = [(file.page, table) for file in published_files(_SUITE) for table in file.table]
    candidates = (_section(page, table, found) for page, table in tables)
    return [section for section in candidates if section]


def published_row(client: str, result: Result, settings: JmhSettings) -> Row | None:
    """The row of the old page that a result repeats; None for other work. Pure."""
    if not plays_original(settings):
        return None
    one = _Found(client, result)
    tables = [table for file in published_files(_SUITE) for table in file.table]
    rows = ((row, _mode(table)) for table in tables for row in table.row)
    return next((row for row, mode in rows if _repeats(row, one, mode)), None)


def plays_original(settings: JmhSettings) -> bool:
    """Whether the data and the operations are the original's; iterations may be others. Pure."""
    same = ("data", "keys", "batch", "same_keys", "depth", "connection", "value_sizes")
    return all(getattr(settings, name) == getattr(ORIGINAL, name) for name in same)


def _mode(table: PublishedTable) -> str:
    return "sample" if table.figure == sample_times.FIGURE else "thrpt"


def _section(page: Page, table: PublishedTable, found: Sequence[_Found]) -> Section | None:
    mode = _mode(table)
    rows = [(row, [one for one in found if _repeats(row, one, mode)]) for row in table.row]
    if not any(own for _, own in rows):
        return None
    section = _times_section if mode == "sample" else _rates_section
    title = f"{table.title}, {table.unit}"
    source = f"published: {page.title}, {page.version}, {table.section}"
    # Its figures of today are of trials, which time all operations.
    work = f"published: {table.formula.partition('; here')[0]}"
    return section(title, [source, work, _HERE_NOTE, _ERROR_NOTE[mode]], rows)


_HERE_NOTE = "here: JMH's own mean; a call that fails ends its benchmark, which has no figure then"
_ERROR_NOTE = {
    "thrpt": "±: half of JMH's 99.9 % interval over the iterations",
    "sample": "±: half of JMH's 99.9 % interval over the samples, which depend on each other",
}


def _repeats(row: Row, one: _Found, mode: str) -> bool:
    """By client, wire, operation and number of threads: a load's name has two of them."""
    wire, *_, threads, _ = row.load.split("-")
    client = parse_client_name(one.client).id
    params = one.result.params
    theirs = (row.client, wire, _OPERATIONS[row.workload], int(threads), mode)
    here = (client, params["wire"], params["operation"], one.result.threads, one.result.mode)
    return theirs == here


def _rates_section(
    title: str, notes: list[str], rows: Sequence[tuple[Row, list[_Found]]]
) -> Section:
    best = max(row.figures["score_per_s"] for row, own in rows if own)
    best_here = max(one.result.metric.score for _, own in rows for one in own)
    lines: list[list[str]] = []
    for row, own in rows:
        figures = row.figures
        score, error = figures["score_per_s"], figures["error_per_s"]
        name = f"{row.label}, published"
        times = f"{score / best:.2f}" if own else _ABSENT
        lines.append([name, f"{score:.3f}", f"{error:.3f}", times])
        for one in own:
            metric = one.result.metric
            error_here = _ABSENT if isinstance(metric.error, str) else f"{metric.error:.3f}"
            times = f"{metric.score / best_here:.2f}"
            lines.append([f"{row.label}, {one.client}", f"{metric.score:.3f}", error_here, times])
    return Section(
        title=title,
        columns=["benchmark", "score", "±", "× best"],
        rows=lines,
        notes=[*notes, "× best: of the benchmarks that have both scores"],
        unit="ops/s",
        bars=_bars(rows),
    )


def _bars(rows: Sequence[tuple[Row, list[_Found]]]) -> list[Bar]:
    """A client that was played with several profiles has a bar for each of them."""
    bars: list[Bar] = []
    for row, own in rows:
        score = row.figures["score_per_s"]
        bars.append(Bar(label=row.label, measure=_MEASURE, value=score, published=True))
        for one in own:
            label = row.label if one.client == row.client else f"{row.label}, {one.client}"
            value = one.result.metric.score
            bars.append(Bar(label=label, measure=_MEASURE, value=value, published=False))
    return bars


def _times_section(
    title: str, notes: list[str], rows: Sequence[tuple[Row, list[_Found]]]
) -> Section:
    percents = [percent for percent, _ in rows[0][0].percentiles]
    lines: list[list[str]] = []
    for row, own in rows:
        lines.append(sample_times.published_cells(row))
        lines += [_sampled(f"{row.label}, {one.client}", one.result, percents) for one in own]
    return Section(title=title, columns=sample_times.columns(percents), rows=lines, notes=notes)


def _sampled(label: str, result: Result, percents: Sequence[float]) -> list[str]:
    """JMH's times here are in µs."""
    metric = result.metric
    count, error = metric.calls, metric.error
    return [
        label,
        str(count),
        sample_times.measured_s(metric.score * _US),
        _ABSENT if isinstance(error, str) else sample_times.measured_s(error * _US),
        *[
            sample_times.measured_s(metric.percentiles[str(float(percent))] * _US)
            if not 0 < percent < 100 or count >= min_sample_size(percent)
            else _ABSENT
            for percent in percents
        ],
    ]
