"""A report as a document: its tables as text cells, its answers, and what did not count."""

from cachemark.analysis.number_format import (
    count_of,
    counted,
    cpu_with_error,
    hidden_by,
    interval,
    percentile_with_error,
    rate_with_error,
)
from cachemark.analysis.rounds.texts import ratio_words
from cachemark.analysis.statistics import CellSummary, Comparison, Interval, KindSummary
from cachemark.report.absences import absence_text
from cachemark.report.document import Document, DocumentPart, Plots, Table, TableColumn, plain_table
from cachemark.report.model import ClientRow, Group, Metric, Report, Section

_READS = frozenset({"get", "gets", "mget", "gat", "fetch"})
_REFUSED = TableColumn("refused", "refused")
_PERCENTILES = (
    TableColumn("p50", spare=8),
    TableColumn("p99", "p99", spare=9),
    TableColumn("p99.9", spare=2),
)
# In an open loop, all clients have the same rate, so they are compared by p99.
_RATIO_HEADING: dict[Metric, str] = {"rate": "of the fastest", "p99": "p99 of the best"}
# The same where no first is named.
_NO_FIRST_HEADING = "of the top row"


def document(report: Report) -> Document:
    """The report's groups and sections, then its lists. A page has the answers first."""
    experiment = report.header.experiment
    analysis = [text] if (text := experiment.analysis.strip()) else []
    return Document(
        title=experiment.name,
        parts=[
            DocumentPart(paragraphs=[report.header.title], strong=True),
            DocumentPart(items=report.answers, on="page"),
            *[part for group in report.groups for part in _group_parts(group)],
            *map(section_part, report.sections),
            DocumentPart(items=report.answers, on="console"),
            DocumentPart(
                title="Not played", items=[*map(absence_text, report.absences)], on="console"
            ),
            DocumentPart(
                title="Not played",
                items=[absence_text(absence, code=True) for absence in report.absences],
                on="page",
            ),
            DocumentPart(title="Trials that do not count", items=report.rejected),
            DocumentPart(items=report.warnings, on="console"),
            DocumentPart(title="Notes", items=report.warnings, on="page"),
            DocumentPart(title="Environment", items=report.environment, on="page"),
            DocumentPart(title="Analysis", paragraphs=analysis, on="page"),
        ],
    )


def _group_parts(group: Group) -> list[DocumentPart]:
    itself = [self_comparison(group)] if group.itself else []
    ranking = DocumentPart(title=group_title(group), table=ranking_table(group), paragraphs=itself)
    return [ranking, DocumentPart(table=operation_table(group))]


def section_part(section: Section, plots: Plots | None = None) -> DocumentPart:
    """A section's table, whole in a narrow terminal, its notes, and its plots."""
    table = plain_table(section.columns, section.rows, prose=section.prose)
    return DocumentPart(
        title=section.title, table=table, whole=True, items=section.notes, plots=plots
    )


def group_title(group: Group) -> str:
    """The title of a group: workload, load and server."""
    version = f" {group.server_version}" if group.server_version else ""
    return f"{group.workload} · {group.load} · {group.common}{version}"


def ranking_table(group: Group) -> Table:
    """The group's clients, fastest first; hit ratios if a read missed or they are withheld.

    If the server refused operations, their number and their part of the answers are a column.
    Evicted items, and connections opened again as asked, have a column each.
    """
    table = _ranking_table(group)
    totals = [row.summary.total for row in group.rows]
    if any(total and total.not_stored for total in totals):
        table = _inserted(table, "errors", _REFUSED, [_refused(total) for total in totals])
    if any(row.summary.evictions for row in group.rows):
        texts = [evictions_text(row.summary.evictions) for row in group.rows]
        table = _inserted(table, "client-cpu", TableColumn("evictions", "evictions"), texts)
    if any(row.summary.renewed for row in group.rows):
        texts = [counted(row.summary.renewed) for row in group.rows]
        table = _inserted(table, "client-cpu", TableColumn("new connections"), texts)
    ratios = [_hit_ratio(row.summary) for row in group.rows]
    withheld = any(kind.hits is None for row in group.rows for kind in row.summary.kinds)
    if not withheld and all(ratio in (None, 1.0) for ratio in ratios):
        return table
    texts = ["–" if ratio is None else f"{100 * ratio:.1f} %" for ratio in ratios]
    return _inserted(table, "client-cpu", TableColumn("hit ratio", "hit-ratio"), texts)


def _inserted(table: Table, before: str, column: TableColumn, texts: list[str]) -> Table:
    at = [each.id for each in table.columns].index(before)
    return Table(
        columns=[*table.columns[:at], column, *table.columns[at:]],
        rows=[[*row[:at], text, *row[at:]] for row, text in zip(table.rows, texts, strict=True)],
    )


def _refused(kind: KindSummary | None) -> str:
    """Operations that stored nothing, and their part of all that were answered."""
    if kind is None or not kind.not_stored:
        return "0" if kind else "–"
    share = kind.not_stored / (kind.ok + kind.not_stored)
    return f"{counted(kind.not_stored)} ({100 * share:.1f} %)"


def evictions_text(count: int | None) -> str:
    """A number of evicted items; a dash if a server does not report it."""
    return "–" if count is None else counted(count)


def _hit_ratio(summary: CellSummary) -> float | None:
    """Keys that reads found, of those they asked for; None without reads, or if withheld."""
    reads = [kind for kind in summary.kinds if kind.kind in _READS]
    counts = [(kind.hits, kind.misses) for kind in reads]
    found = [hits for hits, _ in counts if hits is not None]
    asked = sum(found) + sum(misses for _, misses in counts if misses is not None)
    return sum(found) / asked if asked else None


def _ranking_table(group: Group) -> Table:
    columns = [
        TableColumn(group.heading, "name"),
        TableColumn("version", words=True, spare=3),
        TableColumn("ops/s", "rate"),
        TableColumn(ratio_heading(group), "ratio"),
        *_PERCENTILES,
        TableColumn("client CPU/op", "client-cpu", spare=4),
        TableColumn("server CPU/op", spare=1),
        TableColumn("errors", "errors", spare=5),
        TableColumn("valid", spare=10),
    ]
    rows = [_ranking_row(row, group, len(columns)) for row in group.rows]
    return Table(columns=columns, rows=rows)


def ratio_heading(group: Group) -> str:
    """The heading of the ratios: it names the row that has 1."""
    unnamed = group.no_first and any(row.fastest for row in group.rows)
    return _NO_FIRST_HEADING if unnamed else _RATIO_HEADING[group.metric]


def _ranking_row(row: ClientRow, group: Group, width: int) -> list[str]:
    summary = row.summary
    of_clients = group.kind == "clients"
    version = summary.library_version if of_clients else summary.server_version
    valid = f"{summary.valid}/{summary.trials}"
    if summary.total is None:
        return [row.name, version, *["–"] * (width - 3), valid]
    total = summary.total
    return [
        row.name,
        version,
        rate_with_error(total.rate),
        share_text(row),
        *_percentiles(total),
        _cpu(summary.client_cpu_us),
        _cpu(summary.server_cpu_us),
        _errors(total),
        valid,
    ]


def share_text(row: ClientRow) -> str:
    """A row relative to the first, with its interval; `~` if 1 is in it."""
    if row.fastest:
        return "1"
    comparison = row.comparison
    if comparison is None or comparison.ratio is None:
        return "–"
    return interval(comparison.ratio, "{:.2f}") + (" ~" if _shows_none(comparison) else "")


def _shows_none(of: Comparison) -> bool:
    """Whether the interval has 1 in it, or there is none and no answer."""
    unanswered = of.answer in ("open", "equal")
    if of.ratio is None or of.ratio.low is None or of.ratio.high is None:
        return unanswered
    ends = (of.ratio.low, of.ratio.high)
    return ends[0] < 1 < ends[1] or (unanswered and 1 in ends)


def _percentiles(kind: KindSummary) -> list[str]:
    if kind.response is None:
        return ["–", "–", "–"]
    return [percentile_with_error(kind.response, percent) for percent in (50.0, 99.0, 99.9)]


def _cpu(of: Interval | None) -> str:
    return "–" if of is None else cpu_with_error(of)


def _errors(kind: KindSummary) -> str:
    """Failed operations by their kind, and their part of all."""
    count = sum(kind.errors.values())
    if not count:
        return "0"
    share = 100 * count / (count + kind.ok + kind.not_stored)
    return ", ".join(f"{n} {name}" for name, n in kind.errors.items()) + f" ({share:.1f} %)"


def self_comparison(group: Group) -> str:
    """The A/A test of a group, and what it says about small differences; empty without one."""
    itself = group.itself
    if itself is None or itself.ratio is None:
        return ""
    what = "ops/s" if group.metric == "rate" else "p99"
    name = group.name_of(itself.second)
    text = f"A/A test: {name}, played twice, has {ratio_words(itself.ratio)} × its own {what}"
    if group.itself_bound <= 1:
        return f"{text} (within {count_of(itself.count, itself.unit)}, so no bound)."
    return f"{text}; {hidden_by(group.itself_bound)} are within the instrument's own error."


def _hits_and_misses(kind: KindSummary, summary: CellSummary) -> list[str]:
    """Hits and misses as text; empty for groups, which are not reads."""
    if kind is summary.groups:
        return ["", ""]
    return ["–" if count is None else counted(count) for count in (kind.hits, kind.misses)]


def operation_table(group: Group) -> Table | None:
    """The figures of each kind of operation, and of groups; None if the workload has one kind."""
    refused = any(kind.not_stored for row in group.rows for kind in row.summary.parts)
    rows = [
        [
            row.name,
            kind.kind,
            rate_with_error(kind.rate),
            *_percentiles(kind),
            *_hits_and_misses(kind, row.summary),
            *([_refused(kind)] if refused else []),
        ]
        for row in group.rows
        if len(row.summary.parts) > 1
        for kind in row.summary.parts
    ]
    if not rows:
        return None
    columns = [
        TableColumn(group.heading),
        TableColumn("operation", words=True),
        TableColumn("ops/s"),
        *_PERCENTILES,
        TableColumn("hits", spare=6),
        TableColumn("misses", spare=7),
        *([_REFUSED] if refused else []),
    ]
    return Table(columns=columns, rows=rows)
