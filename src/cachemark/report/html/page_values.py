"""The contents of the page: the values that the templates read."""

from __future__ import annotations

import msgspec

from cachemark.report.conclusions import ConclusionRow
from cachemark.report.document import Table
from cachemark.report.model import Absence


class HtmlPage(msgspec.Struct, frozen=True, kw_only=True):
    """The whole page, in its order."""

    name: str
    question: str
    headline: str
    answers: list[PageAnswer]
    answer_rows: list[ConclusionRow]
    facts: list[tuple[str, str]]
    warnings: list[str]
    analysis: list[list[tuple[str, bool]]]
    overview: list[PageFigure]
    factors: list[PageFigure]
    groups: list[GroupPart]
    loads: list[PageFigure]
    memory: list[PageFigure]
    search: list[SectionPart]
    defaults: list[SectionPart]
    rounds: list[SectionPart]
    within: list[SectionPart]
    published: list[SectionPart]
    loops: list[SectionPart]
    audit: list[SectionPart]
    absences: list[Absence]
    trials: TrialPart
    environment: list[tuple[str, str]]
    command: str
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
    """A suite's own table with its plots."""

    anchor: str
    title: str
    table: Table
    notes: list[str]
    figures: list[PageFigure]


class TrialPart(msgspec.Struct, frozen=True, kw_only=True):
    """The trials: the number with each verdict, those that are not valid, and a table of all."""

    counts: list[tuple[str, int]]
    rejected: list[str]
    table: Table


class Download(msgspec.Struct, frozen=True, kw_only=True):
    """Raw data inside the page."""

    label: str
    file: str
    size: str
    address: str
