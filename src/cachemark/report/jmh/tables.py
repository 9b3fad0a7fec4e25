"""The table of JMH's figures as text cells. Pure."""

from functools import partial

from cachemark.analysis.number_format import number, time
from cachemark.report.document import Document, DocumentPart, Table, TableColumn
from cachemark.report.jmh.model import JmhReport, JmhRow, Rate
from cachemark.report.plots.published import published
from cachemark.report.tables import section_part

_CELL = (
    *[TableColumn(title, words=True) for title in ("client", "wire", "operation")],
    *map(TableColumn, ("value", "threads", "ops/s")),
)
# Times: only the mode `latency` has them.
_PERCENTILES = ("50.0", "99.0", "99.9")
_ABSENT = "–"
_BESIDE = (
    "Absolute figures of different machines cannot be compared; the order and the ratios within a "
    "column can."
)


def document(report: JmhReport) -> Document:
    """JMH's figures, their notes, the published ones, and the benchmarks without a figure."""
    table, beside = figures_table(report), [_BESIDE] if report.sections else []
    return Document(
        title=report.title,
        kind="Java clients under JMH",
        facts=[("Server", report.server), *[("JVM", jvm) for jvm in report.jvm]],
        parts=[
            DocumentPart(table=table),
            DocumentPart(title="No figure", items=report.failures),
            DocumentPart(items=report.notes),
            DocumentPart(title="Beside the published figures", paragraphs=beside, on="page"),
            *[section_part(of, partial(published, of)) for of in report.sections],
        ],
    )


def figures_table(report: JmhReport) -> Table:
    """A row for each benchmark of each client."""
    percents = _PERCENTILES if "latency" in report.settings.modes else ()
    return Table(
        columns=[*_CELL, *[TableColumn(f"p{float(percent):g}") for percent in percents]],
        rows=[_cells(row, percents) for row in report.rows],
    )


def _cells(row: JmhRow, percents: tuple[str, ...]) -> list[str]:
    seconds = row.times.percentiles_s if row.times else {}
    return [
        row.client,
        row.wire,
        row.operation,
        f"{row.value_bytes} B",
        str(row.threads),
        _rate(row.rate),
        *[
            time(seconds[percent] * 1e9) if percent in seconds else _ABSENT
            for percent in percents
        ],
    ]  # fmt: skip


def _rate(rate: Rate | None) -> str:
    if rate is None:
        return _ABSENT
    if rate.error_per_s is None:
        return number(rate.ops_per_s)
    return f"{number(rate.ops_per_s)} ±{100 * rate.error_per_s / rate.ops_per_s:.1f} %"
