"""A comparison as text cells: one table for each figure, which the renderers draw."""

from cachemark.analysis.number_format import (
    count_of,
    interval,
    rate_with_error,
    size_with_error,
    time_with_error,
)
from cachemark.analysis.statistics import FIGURES, Answer, Comparison, Figure, Interval
from cachemark.report.cells import CELL_FIELDS
from cachemark.report.compare.gate import gate_line
from cachemark.report.compare.model import ComparisonReport, ComparisonRow
from cachemark.report.compare.selection import sort_key
from cachemark.report.document import Document, DocumentPart, Table, TableColumn

_ANSWERS: tuple[Answer, ...] = ("better", "worse", "equal", "open")
_NO_ANSWER = "no answer"
_ABSENT = "–"


def document(compared: ComparisonReport) -> Document:
    """The comparison: its sides, a table for each figure, its lists, and the answer."""
    first, *lines = [line for line in [*head(compared), _common_fields(compared)] if line]
    answers = [_tally(compared), *([gate_line(compared)] if compared.gate else [])]
    return Document(
        title=first,
        lines=lines,
        parts=[
            DocumentPart(items=[first, *lines], on="console"),
            DocumentPart(paragraphs=answers, strong=True, on="page"),
            *[DocumentPart(title=name, table=table) for name, table in _tables(compared)],
            DocumentPart(title="Valid before, but not now", items=compared.lost),
            DocumentPart(title="Not compared", items=compared.left_out),
            DocumentPart(title="Other differences", items=compared.differences),
            DocumentPart(title="Notes", items=compared.notes),
            DocumentPart(items=answers, on="console"),
        ],
    )


def head(compared: ComparisonReport) -> list[str]:
    """The two sides of the comparison, and the method."""
    other = compared.other or "each of the others"
    several = compared.tests > 1
    tests = f"; Holm's correction over the {compared.tests} tests of a figure" if several else ""
    return [
        f"{other} against {compared.baseline}",
        f"{_method(compared)}; margin {compared.margin_percent:g} %{tests}",
    ]


def _method(compared: ComparisonReport) -> str:
    if compared.sittings is not None:
        return f"played in turns, {count_of(compared.sittings, 'sitting')}: intervals over sittings"
    if compared.paired:
        return "paired by block: Student's t interval of the differences of logarithms"
    paired = any(of.unit == "pair of runs" for row in compared.rows for of in row.comparisons)
    if not paired:
        return "one value for each run"
    return "one value for each run, paired with its neighbour in time: Student's t on logarithms"


def _common_fields(compared: ComparisonReport) -> str:
    fields = _common(compared)
    return " · ".join(getattr(compared.rows[0].baseline, f) for f in fields) if fields else ""


def _tables(compared: ComparisonReport) -> list[tuple[str, Table]]:
    names = dict.fromkeys(c.figure for row in compared.rows for c in row.comparisons if c.ratio)
    return [(FIGURES[name].title, _table(compared, FIGURES[name])) for name in names]


def _table(compared: ComparisonReport, figure: Figure) -> Table:
    """The cells of the same work together, the best one first."""
    common, sign = _common(compared), -1 if figure.more_is_better else 1
    found = [
        (row, of, of.ratio, sign * (of.first_value or of.ratio).value)
        for row in compared.rows
        for of in row.comparisons
        if of.figure == figure.name and of.ratio
    ]
    found.sort(key=lambda each: (sort_key(each[0].other)[:2], each[3]))
    rows = [[_label(row, compared, common), *_figures(of, it, figure)] for row, of, it, _ in found]
    ratio = f"ratio ({100 * (1 - compared.level):.3g} %)"
    better = "more is better" if figure.more_is_better else "less is better"
    return Table(
        # A narrow terminal drops columns that the ratio covers.
        columns=[
            TableColumn(better),
            TableColumn("baseline", spare=3),
            TableColumn("other", spare=4),
            TableColumn(ratio),
            TableColumn("p", spare=1),
            TableColumn("n", spare=2),
            TableColumn("answer", words=True),
        ],
        rows=rows,
    )


def _figures(of: Comparison, ratio: Interval, figure: Figure) -> list[str]:
    p = _ABSENT if of.p_holm is None else (f"{of.p_holm:.3f}" if of.p_holm >= 0.001 else "<0.001")
    answer = of.answer if of.tested else _NO_ANSWER
    return [
        value(of.second_value, figure),
        value(of.first_value, figure),
        ratio_text(of, ratio),
        p,
        "+".join(map(str, dict.fromkeys(of.counts[::-1]))),
        answer,
    ]


def ratio_text(of: Comparison, ratio: Interval) -> str:
    """The ratio with its interval, and with the interval of the family, where there is one."""
    own = interval(ratio, "{:.3f}")
    wide = of.together
    if wide is None or wide.low is None or wide.high is None:
        return own
    return f"{own}, corrected {wide.low:.3f}–{wide.high:.3f}"


def value(of: Interval | None, figure: Figure) -> str:
    """A figure with its interval, in a readable unit."""
    if of is None:
        return _ABSENT
    write = {"ops/s": rate_with_error, "bytes": size_with_error}.get(figure.unit, time_with_error)
    return write(of.times(1e3) if figure.unit == "us" else of)


def _common(compared: ComparisonReport) -> list[str]:
    """The fields that are the same in all cells of both sides."""
    cells = [cell for row in compared.rows for cell in (row.baseline, row.other)]
    return [field for field in CELL_FIELDS if len({getattr(cell, field) for cell in cells}) == 1]


def _label(row: ComparisonRow, compared: ComparisonReport, common: list[str]) -> str:
    """A row's cell without the fields that all share or that the head contains."""
    parts = [_part(field, row, compared) for field in CELL_FIELDS if field not in common]
    return " · ".join(part for part in parts if part) or "all"


def _part(field: str, row: ComparisonRow, compared: ComparisonReport) -> str:
    before, after = getattr(row.baseline, field), getattr(row.other, field)
    if before == after:
        return after
    if compared.paired and before == compared.baseline:
        return "" if after == compared.other else after
    return f"{after} (baseline {before})"


def _tally(compared: ComparisonReport) -> str:
    comparisons = [c for row in compared.rows for c in row.comparisons if c.ratio]
    answers = [c.answer if c.tested else _NO_ANSWER for c in comparisons]
    counts = [(answers.count(text), text) for text in (*_ANSWERS, _NO_ANSWER)]
    counted_answers = ", ".join(f"{count} {text}" for count, text in counts if count)
    lost = f"; {len(compared.lost)} lost" if compared.lost else ""
    return f"{counted_answers or 'nothing compared'}{lost}"
