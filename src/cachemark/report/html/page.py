"""Report → the values for the template: texts, rendered plots, anchors, descriptions."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable

import msgspec

from cachemark.analysis.number_format import count_of, number, size
from cachemark.report import csv_file
from cachemark.report.conclusions import ConclusionRow, headline
from cachemark.report.conclusions import conclusion_rows as answer_rows
from cachemark.report.document import DocumentPart, Plot, Table, plain_table
from cachemark.report.html import descriptions
from cachemark.report.json_text import stamped
from cachemark.report.model import SCHEMA, Group, Report, TrialRow
from cachemark.report.plots import plots
from cachemark.report.plots.images import inline_svg, svg
from cachemark.report.plots.layout import NARROW, WIDE
from cachemark.report.plots.ranking import leader
from cachemark.report.tables import (
    group_title,
    operation_table,
    ranking_table,
    section_part,
    self_comparison,
)


class HtmlPage(msgspec.Struct, frozen=True, kw_only=True):
    """The whole page besides what the report has itself; `sections` by their topic."""

    headline: str
    answers: list[PageAnswer]
    answer_rows: list[ConclusionRow]
    facts: list[tuple[str, str]]
    analysis: list[list[tuple[str, bool]]]
    overview: list[PageFigure]
    factors: list[PageFigure]
    groups: list[GroupPart]
    loads: list[PageFigure]
    memory: list[PageFigure]
    sections: dict[str, list[SectionPart]]
    trial_counts: list[tuple[str, int]]
    trials: Table
    environment: list[tuple[str, str]]
    downloads: list[Download]


class PageAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer: its group, its text, and the anchor of the group."""

    place: str
    text: str
    anchor: str


class PageFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A plot, rendered for two widths."""

    name: str
    title: str
    caption: str
    wide: str
    narrow: str
    table: Table


class GroupPart(msgspec.Struct, frozen=True, kw_only=True):
    """The clients that did the same work."""

    anchor: str
    title: str
    answer: str
    workload: str
    load: str
    figures: list[PageFigure]
    ranking: Table
    itself: str
    kinds: Table | None


class SectionPart(msgspec.Struct, frozen=True, kw_only=True):
    """A section of the report with its plots."""

    anchor: str
    part: DocumentPart
    figures: list[PageFigure]


class Download(msgspec.Struct, frozen=True, kw_only=True):
    """Raw data inside the page."""

    label: str
    file: str
    size: str
    address: str


def page(report: Report) -> HtmlPage:
    """Make the page of a report. Raises UsageError if the plots cannot be rendered."""
    wide, narrow = plots(report, WIDE), plots(report, NARROW)
    overview, memory = drawn(wide.overview, narrow.overview), drawn(wide.memory, narrow.memory)
    if len(overview) == len(memory) == 1:
        # One workload: its two small charts stand side by side.
        overview, memory = [*overview, *memory], []
    anchors = [f"group-{number_}" for number_ in range(1, len(report.groups) + 1)]
    first_lines = answer_rows(report, anchors)
    group_figures = map(drawn, wide.groups, narrow.groups)
    return HtmlPage(
        headline=headline(report),
        answers=_answers(report, anchors),
        answer_rows=first_lines,
        facts=_facts(report),
        analysis=[
            descriptions.code_parts(" ".join(paragraph.split()))
            for paragraph in report.header.experiment.analysis.split("\n\n")
            if paragraph.strip()
        ],
        overview=overview,
        factors=drawn(wide.factors, narrow.factors),
        groups=[
            _group(report, *each)
            for each in zip(report.groups, first_lines, group_figures, strict=True)
        ],
        loads=drawn(wide.loads, narrow.loads),
        memory=memory,
        sections=_sections(report, map(drawn, wide.sections, narrow.sections)),
        trial_counts=Counter(trial.verdict for trial in report.trials).most_common(),
        trials=_trials(report),
        environment=descriptions.environment(report),
        downloads=_downloads(report),
    )


def drawn(wide: list[Plot], narrow: list[Plot]) -> list[PageFigure]:
    """Plots, rendered for two widths."""
    return [
        PageFigure(
            name=big.name,
            title=big.title,
            caption=big.caption,
            wide=inline_svg(svg(big.spec), name="wide", alt=big.alt),
            narrow=inline_svg(svg(small.spec), name="narrow", alt=small.alt),
            table=big.table,
        )
        for big, small in zip(wide, narrow, strict=True)
    ]


def _answers(report: Report, anchors: list[str]) -> list[PageAnswer]:
    """The answers, each with the anchor of its group; answers of sittings are all linked to one."""
    if report.rounds is not None:
        return [_answer(text, "rounds") for text in report.answers]
    places = {
        f"{group.workload}, {group.load}, {group.common}": anchor
        for group, anchor in zip(report.groups, anchors, strict=True)
    }
    return [
        _answer(text, places.get(text.partition(": ")[0], "results")) for text in report.answers
    ]


def _answer(text: str, anchor: str) -> PageAnswer:
    place, colon, answer = text.partition(": ")
    return PageAnswer(place=place if colon else "", text=answer or text, anchor=anchor)


def _design(report: Report) -> str:
    experiment = report.header.experiment
    if report.rounds is None:
        return f"{count_of(experiment.blocks, 'block')} in random order"
    sittings = count_of(report.rounds.sittings, "sitting")
    return f"{sittings}, in turns of {report.turns}"


def _facts(report: Report) -> list[tuple[str, str]]:
    header = report.header
    host = header.host
    virtual = ", virtual" if host.hypervisor else ""
    return [
        ("Trials", report.validity),
        ("Design", _design(report)),
        ("Machine", f"{host.cpu_model or 'unknown CPU'}, {len(host.usable_cpus)} CPUs{virtual}"),
        ("Date", header.created_at.replace("T", " ")[:16] + " UTC"),
        ("cachemark", header.cachemark),
    ]


def _group(
    report: Report, group: Group, line: ConclusionRow, figures: list[PageFigure]
) -> GroupPart:
    experiment = report.header.experiment
    workload = next((w for w in experiment.workloads if w.name == group.workload), None)
    load = next((a for a in experiment.loads if a.name == group.load), None)
    return GroupPart(
        anchor=line.anchor,
        title=group_title(group),
        answer=f"{line.first} first, {line.figure}" if leader(group) else "no first is named",
        workload=descriptions.workload(workload) if workload else "",
        load=descriptions.load(load) if load else "",
        figures=figures,
        ranking=ranking_table(group),
        itself=self_comparison(group),
        kinds=operation_table(group),
    )


def _sections(report: Report, figures: Iterable[list[PageFigure]]) -> dict[str, list[SectionPart]]:
    by_topic: dict[str, list[SectionPart]] = {}
    for number_, (section, of) in enumerate(zip(report.sections, figures, strict=True), 1):
        topic = "audit" if section.topic == "hosts" else section.topic
        part = SectionPart(anchor=f"section-{number_}", part=section_part(section), figures=of)
        by_topic.setdefault(topic, []).append(part)
    return by_topic


def _trials(report: Report) -> Table:
    columns = ["#", "block", "client", "server", "workload", "load", "verdict", "ops/s",
               "other CPU", "steal", "reason"]  # fmt: skip
    rows = [_trial(trial) for trial in report.trials]
    if not any(trial.reasons for trial in report.trials):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return plain_table(columns=columns, rows=rows)


def _trial(trial: TrialRow) -> list[str]:
    cell = trial.cell
    return [
        str(trial.index + 1),
        str(trial.block + 1),
        cell.client,
        cell.server,
        cell.workload,
        cell.load,
        trial.verdict,
        "–" if trial.ops_per_s is None else number(trial.ops_per_s),
        _percent(trial.foreign_cpu_percent),
        _percent(trial.steal_percent),
        "; ".join(trial.reasons),
    ]


def _percent(of: float | None) -> str:
    return "–" if of is None else f"{of:.1f} %"


def _downloads(report: Report) -> list[Download]:
    name = report.header.id
    plain = msgspec.json.encode(msgspec.to_builtins(stamped(report, SCHEMA), str_keys=True))
    return [
        download("The whole report", "application/json", f"{name}.json", plain.decode("utf-8")),
        download("The figures", "text/csv", f"{name}.csv", csv_file.render(report)),
    ]


def download(label: str, kind: str, file: str, content: str) -> Download:
    """A file inside the page."""
    # A link that contains the file saves it without a script.
    raw = content.encode("utf-8")
    coded = base64.b64encode(raw).decode("ascii")
    return Download(
        label=label,
        file=file,
        size=size(len(raw)),
        address=f"data:{kind};charset=utf-8;base64,{coded}",
    )
