"""A history as text cells: one table for each line, or one of the runs."""

from cachemark.analysis.number_format import count_of
from cachemark.analysis.statistics import FIGURES
from cachemark.report.cells import cell_title
from cachemark.report.compare.tables import value
from cachemark.report.document import Document, DocumentPart, Table, TableColumn
from cachemark.report.history.model import CellHistory, Entry, History, RunRow
from cachemark.report.tables import evictions_text

_ABSENT = "–"
# The columns that a narrow terminal drops, in this order.
_DISPENSABLE = (
    "runtime", "cachemark", "name", "made", "p99", "server", "host", "valid", "library", "played",
    "experiment", "first",
)  # fmt: skip


def document(history: History) -> Document:
    """The history: a table for each line, or one of the runs, and the notes below them."""
    if not history.lines:
        hint = "cachemark history CLIENT shows its cells over time"
        parts = [DocumentPart(table=_runs(history.runs)), DocumentPart(items=[hint])]
        return Document(title="History", parts=parts if history.runs else [])
    names = [line.cell for line in history.lines]
    parts = [
        DocumentPart(title=_title(line, names.count(line.cell) > 1), table=_table(line))
        for line in history.lines
    ]
    return Document(title="History", parts=[*parts, DocumentPart(items=_notes(history))])


def _notes(history: History) -> list[str]:
    entries = [entry for line in history.lines for entry in line.entries]
    if not any(entry.ratio_to_previous for entry in entries):
        return history.notes
    return [
        "the ratio to the previous run has no interval and no answer: the trials of one run share "
        "its state, so they do not show how much runs differ",
        *history.notes,
    ]


def _runs(runs: list[RunRow]) -> Table:
    titles = ["run", "name", "made", "experiment", "first", "host", "cachemark"]
    titles += ["valid", "played", "planned"]
    rows = [_run(run) for run in runs]
    # A run may have no name of its own, and no answer yet.
    used = [
        n
        for n, title in enumerate(titles)
        if title not in ("name", "first") or any(row[n].strip(_ABSENT) for row in rows)
    ]
    return _droppable([titles[n] for n in used], [[row[n] for n in used] for row in rows])


def _run(run: RunRow) -> list[str]:
    if run.problem:
        return [run.folder, f"cannot be read: {run.problem}", *[""] * 8]
    valid = str(run.valid) if run.kind == "grid" else _ABSENT
    counts = [valid, _with_replays(str(run.played), run.replays), str(run.planned)]
    named = [run.folder, run.name, _day(run.created_at), run.experiment, run.first or _ABSENT]
    return [*named, run.host, run.cachemark, *counts]


def _title(line: CellHistory, ambiguous: bool) -> str:
    name = cell_title(line.cell)
    return f"{name} (work {line.work})" if ambiguous else name


def _table(line: CellHistory) -> Table:
    titles = [FIGURES[name].title for name in line.figures]
    columns = ["run", "made", "host", "cachemark", "library", "runtime", "server", "valid"]
    evicted = any(entry.evictions for entry in line.entries)
    rows = [_entry(entry, line.figures, evicted) for entry in line.entries]
    columns += [*titles, *["evictions"] * evicted, "ratio to previous", "reason"]
    return _droppable(columns, rows)


def _droppable(titles: list[str], rows: list[list[str]]) -> Table:
    """A table of which a narrow terminal does without some columns."""
    spares = {title: spare for spare, title in enumerate(_DISPENSABLE, 1)}
    return Table(columns=[TableColumn(of, spare=spares.get(of, 0)) for of in titles], rows=rows)


def _entry(entry: Entry, figures: list[str], evicted: bool) -> list[str]:
    ratio = entry.ratio_to_previous
    reason = "" if entry.valid else entry.reason
    return [
        entry.folder,
        _day(entry.created_at),
        entry.host,
        entry.cachemark,
        entry.library_version or _ABSENT,
        entry.runtime or _ABSENT,
        entry.server_version or _ABSENT,
        _with_replays(f"{entry.valid}/{entry.trials}", entry.replays),
        *[value(entry.figures[name], FIGURES[name]) for name in figures],
        *[evictions_text(entry.evictions)] * evicted,
        f"{ratio:.3f}" if ratio else _ABSENT,
        " ".join(reason.split()),
    ]


def _with_replays(count: str, replays: int) -> str:
    """A count of trials such as `5/5 (2 replays)`."""
    return f"{count} ({count_of(replays, 'replay')})" if replays else count


def _day(created_at: str) -> str:
    """A time such as 2026-03-01 10:00, in UTC."""
    return created_at[:16].replace("T", " ")
