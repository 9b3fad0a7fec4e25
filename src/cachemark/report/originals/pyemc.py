"""The run as emcache's Python suite published one: Markdown tables of rates, fills and memory.

A row for each workload and load, a column for each server and client; where a client was played on
several servers the best of them is bold. A rate is what the valid trials did together over their
time together, to the reply that ends the last operation: the original ended its clock at the last
send where there is no reply, and timed nothing but the sends of a fill. Units are the original's:
`mb/s` is 10⁶ bytes a second, `mb` of memory 2²⁰ bytes. Memory: key and value bytes of a fill, the
server's own `bytes`, and its resident size, means of the trials; what is not known is a dash.
"""

from collections.abc import Callable, Sequence

from cachemark.analysis.statistics import answered
from cachemark.model.footprint import mean
from cachemark.model.outcome import Outcome
from cachemark.model.protocol import Done
from cachemark.report.document import plain_table
from cachemark.report.markdown import table_lines
from cachemark.report.originals import fills
from cachemark.report.originals.quotes import quoted_lines
from cachemark.report.series import ExportedRun, Series

_ABSENT = "–"


def render(run: ExportedRun) -> dict[str, str]:
    """The Markdown."""
    header = run.header
    filled = [series for series in run.series if series.workload.fill_percent is not None]
    others = [series for series in run.series if series.workload.fill_percent is None]
    lines = [
        f"# {header.experiment.name}",
        "",
        f"cachemark {header.cachemark}, run {header.id}. Rates: by the time to the last reply.",
    ]
    if others:
        lines += ["", "## Rates", "", *_grid(others, "Test", _test, _rate_text)]
    if filled:
        lines += ["", "## Fill cache to a certain percentage", ""]
        lines += _grid(filled, "Task", _task, _fill_text)
        lines += ["", "## Memory efficiency", "", *_memory(filled)]
    lines += quoted_lines(run.header.experiment.name, heading="## {}")
    if run.left_out:
        lines += ["", "Left out:", "", *[f"- {reason}" for reason in run.left_out]]
    return {"emcache.md": "\n".join(lines) + "\n"}


def _grid(
    members: Sequence[Series],
    head: str,
    name: Callable[[Series, bool], str],
    text: Callable[[Series], str],
) -> list[str]:
    """A table with a row for each workload and load, and a column for each server and client."""
    columns = list(dict.fromkeys(_column(series) for series in members))
    loads = len({series.cell.load for series in members}) > 1
    rows: dict[tuple[str, str], dict[str, Series]] = {}
    for series in members:
        key = series.cell.workload, series.cell.load
        rows.setdefault(key, {})[_column(series)] = series
    body = [
        [name(next(iter(row.values())), loads), *[_cell(row, at, text) for at in columns]]
        for row in rows.values()
    ]
    return table_lines(plain_table(columns=[head, *columns], rows=body))


def _column(series: Series) -> str:
    return f"{series.cell.server}/{series.cell.client}"


def _cell(row: dict[str, Series], column: str, text: Callable[[Series], str]) -> str:
    series = row.get(column)
    if series is None:
        return _ABSENT
    rivals = [other for other in row.values() if other.cell.client == series.cell.client]
    best = len(rivals) > 1 and max(rivals, key=_rate) is series
    return f"**{text(series)}**" if best else text(series)


def _test(series: Series, loads: bool) -> str:
    workload = series.workload
    count = f"{workload.ops:,}x " if workload.ops else ""
    return f"{count}{workload.name}" + (f", {series.cell.load}" if loads else "")


def _task(series: Series, loads: bool) -> str:
    load = f", {series.cell.load}" if loads else ""
    return f"Fill cache to {series.workload.fill_percent:g}%{load}"


def _rate(series: Series) -> float:
    """Operations per second; of a fill, items per second."""
    is_fill = series.workload.fill_percent is not None
    return _per_s(series, fills.items if is_fill else answered)


def _per_s(series: Series, count: Callable[[Done], int]) -> float:
    elapsed_s = sum(window.elapsed_ns for window in series.windows) / 1e9
    return sum(map(count, series.windows)) / elapsed_s


def _rate_text(series: Series) -> str:
    thousands = _rate(series) / 1e3
    return f"{thousands:.0f}k/s" if thousands >= 10 else f"{thousands:.2g}k/s"


def _fill_text(series: Series) -> str:
    return f"{_rate_text(series)} - {_per_s(series, fills.user_bytes) / fills.RATE_MB:.0f}mb/s"


def _memory(filled: Sequence[Series]) -> list[str]:
    columns = ["Server", "User stored size", "bytes stat", "process resident size"]
    rows = [
        [server, *_sizes([o for s in filled if s.cell.server == server for o in s.outcomes])]
        for server in dict.fromkeys(series.cell.server for series in filled)
    ]
    return table_lines(plain_table(columns=columns, rows=rows))


def _sizes(trials: Sequence[Outcome]) -> list[str]:
    of = mean([fills.footprint(trial) for trial in trials])
    parts = [_part(of.user_bytes, whole) for whole in (of.reported_bytes, of.rss_bytes)]
    return [f"{of.user_bytes / fills.MEMORY_MB:.4g}mb", *parts]


def _part(user: float, whole: float | None) -> str:
    if not whole:
        return _ABSENT
    return f"{whole / fills.MEMORY_MB:.4g}mb ({100 * user / whole:.0f}% eff.)"
