"""The words of docs/results.md: a suite's section, its leads and its published figures. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from cachemark.analysis.rounds.answers import Answers, GroupAnswer, Ranking
from cachemark.analysis.rounds.texts import plus_minus_percent, ratio_words
from cachemark.analysis.statistics import Comparison
from cachemark.report.markdown import one_line
from cachemark.report.model import Report, Section

_PROSE_COLUMNS = 119
# An interval that is wider than this, in percent either way, is left out.
_TELLS_NOTHING = 100


class Lead(msgspec.Struct, frozen=True):
    """The first of a ranking relative to its second, in words, with the date of the run."""

    suite: str
    date: str
    work: str
    first: str
    second: str
    ratio: str
    answer: str


class Head(NamedTuple):
    """A suite's name, the command of its run, and what its picture shows."""

    suite: str
    command: str
    picture: str


def section(
    head: Head,
    report: Report,
    answers: Answers,
    before: Sequence[Lead],
    pairs: Sequence[Comparison],
) -> str:
    """A suite's part of the page: the command, the machine, the answers, the picture.

    `before` are the leads of earlier runs, `pairs` ratios that no ranking has.
    """
    header = report.header
    # The processor, the number of CPUs, and whether they are virtual; the archive has the rest.
    machine = ", ".join(report.environment[0].split(", ")[:3])
    played = f"{header.created_at[:10]}, {report.valid_trials} trials valid: {machine}."
    lines = [
        *(f"## {head.suite}", "", _wrapped(header.experiment.question), ""),
        *("```sh", head.command, "```", ""),
        _wrapped(f"Played on {played}"),
        "",
        *_answers(head.suite, report, answers, before),
        *_pairs(pairs),
        "",
        f"![{head.picture}](pictures/{head.suite}.png)",
        "",
    ]
    return "\n".join(lines)


def _pairs(pairs: Sequence[Comparison]) -> list[str]:
    """A table of ratios to one client that no ranking has, if there are any."""
    rows = [
        f"| {of.first.workload}, {of.first.load} | `{of.first.client}` | {ratio_words(of.ratio)} |"
        for of in pairs
        if of.ratio is not None
    ]
    base = "".join(f"| work | client | ratio to `{of.second.client}` |" for of in pairs[:1])
    return ["", base, "|:--|:--|:--|", *rows] if rows else []


def _answers(suite: str, report: Report, answers: Answers, before: Sequence[Lead]) -> list[str]:
    """A table of a suite's rankings; its report has the other sentences, for `quick` README."""
    earlier = {(lead.suite, lead.work): lead for lead in before}
    found = leads(suite, report, answers)
    rows = [_row(lead, own, earlier.get((suite, lead.work))) for lead, own in found]
    readme = "[README](../README.md#what-make-bench-prints) has the other answers."
    head = [
        "| work | first | second | ratio | answer | own error | before |",
        "|:--|:--|:--|:--|:--|--:|:--|",
    ]
    return [*head, *rows, *(["", readme] if suite == "quick" else [])]


def leads(suite: str, report: Report, answers: Answers) -> list[tuple[Lead, float]]:
    """The lead of each ranking of a run, and the bound of its A/A test (1 without one)."""
    both = report.header.experiment.rank == "servers"
    ranked = [of for of in answers.groups if both or of.question.kind == "clients"]
    date = report.header.created_at[:10]
    return [
        (_lead(suite, date, of, ranking), ranking.bound)
        for of in ranked
        if (ranking := of.ranking(of.primary))
    ]


def _lead(suite: str, date: str, of: GroupAnswer, ranking: Ranking) -> Lead:
    work = f"{of.question.workload}, {of.question.load}, {of.question.common}"
    lead = ranking.lead
    if lead is None or lead.ratio is None:
        return Lead(suite, date, work, "–", "–", "–", "no first")
    answer = "first" if lead.answer in ("better", "worse") else lead.answer
    first, second = (of.question.name(cell) for cell in (lead.first, lead.second))
    wide = answer == "open" and (plus_minus_percent(lead.ratio) or 0) > _TELLS_NOTHING
    ratio = f"{lead.ratio.value:.2f}" if wide else ratio_words(lead.ratio)
    return Lead(suite, date, work, first, second, ratio, answer)


def _row(lead: Lead, own_error: float, before: Lead | None) -> str:
    """A table row: a lead, the instrument's own error by the A/A test, and the lead before."""
    own = f"{100 * own_error - 100:.1f} %" if own_error > 1 else "–"
    cells = [lead.work, _code(lead.first), _code(lead.second), lead.ratio, lead.answer, own]
    return f"| {' | '.join([*cells, _before(before, lead)])} |"


def _before(before: Lead | None, now: Lead) -> str:
    """What the lead was if its answer or its first differs; open leads are alike."""
    if before is None:
        return "–"
    same_pair = (before.first, before.second) == (now.first, now.second)
    if before.answer == now.answer and (same_pair or now.answer == "open"):
        return "same"
    if before.answer == "no first":
        return before.answer
    return f"{_code(before.first)}, {before.answer}"


def _code(name: str) -> str:
    return name if name == "–" else f"`{name}`"


def _wrapped(text: str) -> str:
    return textwrap.fill(
        one_line(text), _PROSE_COLUMNS, break_long_words=False, break_on_hyphens=False
    )


def published(suite: str, reports: Sequence[Report]) -> list[list[str]]:
    """The published figures of a suite beside its runs', a row for each figure.

    Each has suite, date, table, cell, figure and value. The first report that has a table gives it.
    """
    tables: dict[str, tuple[str, Section]] = {}
    for report in reports:
        for of in report.sections:
            if of.topic == "published" and not of.prose:
                tables.setdefault(of.title, (report.header.created_at[:10], of))
    return [
        [suite, date, title, row[0], name, value]
        for title, (date, section) in tables.items()
        for row in section.rows
        for name, value in zip(_figures(section.columns), row[1:], strict=True)
    ]


def _figures(columns: Sequence[str]) -> list[str]:
    """The names of a table's figures: a ratio to the best is one of the column before it."""
    return [f"{before}, {name}" if name == "× best" else name for before, name in pairwise(columns)]
