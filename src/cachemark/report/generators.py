"""The load generators beside a measuring client: their rate, and their own response times."""

from collections.abc import Iterator, Sequence

from cachemark.analysis.number_format import number, time
from cachemark.model import histogram
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.protocol import Done
from cachemark.report.cells import cell_title
from cachemark.report.model import Section

_COLUMNS = ["cell", "load by", "rate due", "rate done", "operations", "p50", "p99"]


def sections(outcomes: Sequence[Outcome]) -> list[Section]:
    """A row for each cell and each host that made its load; empty where clients were alone."""
    loaded: dict[Cell, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.generated is not None:
            loaded.setdefault(outcome.trial.cell, []).append(outcome)
    if not loaded:
        return []
    return [
        Section(
            title="Load generators",
            topic="hosts",
            columns=_COLUMNS,
            rows=[row for cell, trials in loaded.items() for row in _rows(cell, trials)],
            notes=[
                "Over all trials of a cell. These are the generators' own response times; those "
                "of the cell are the measuring client's. A cell's rate is that of both together."
            ],
            prose=True,
        )
    ]


def _rows(cell: Cell, trials: Sequence[Outcome]) -> Iterator[list[str]]:
    """The generators of a cell together; where they are several hosts, also each of them."""
    first = trials[0]
    due = number(first.load.rate) if first.load.rate else "closed loop"
    by = first.generators.client if first.generators else ""
    yield [
        cell_title(cell),
        by,
        due,
        *_figures([trial.generated for trial in trials if trial.generated]),
    ]
    names = [part.name for part in first.hosts if "load" in part.roles]
    for name in names if len(names) > 1 else []:
        parts = [
            part.measure
            for trial in trials
            for part in trial.hosts
            if part.name == name and part.measure
        ]
        yield [cell_title(cell), name, "–", *_figures(parts)]


def _figures(windows: Sequence[Done]) -> list[str]:
    """Rate, count and percentiles of some windows together."""
    operations = [operation for window in windows for operation in window.operations.values()]
    done = sum(operation.succeeded for operation in operations)
    elapsed_ns = sum(window.elapsed_ns for window in windows)
    times = histogram.merge_encoded(operation.response for operation in operations)
    percentiles = [time(times.percentile(percent)) if times else "–" for percent in (50, 99)]
    return [number(done * 1e9 / max(1, elapsed_ns)), f"{done:,}", *percentiles]
