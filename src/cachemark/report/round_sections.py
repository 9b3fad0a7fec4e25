"""Tables about a run's sittings: every pair by every figure, and what clients leave to the next."""

from __future__ import annotations

from cachemark.analysis.rounds.answers import Answers, GroupAnswer
from cachemark.analysis.rounds.carry_over import CarryOverTable
from cachemark.analysis.rounds.contrast import RoundContrast
from cachemark.analysis.rounds.questions import Question
from cachemark.analysis.rounds.steal import Steal
from cachemark.analysis.rounds.texts import (
    carry_over_texts,
    figure_words,
    gap_text,
    ratio_words,
    steal_text,
)
from cachemark.report.model import Section

CARRY_OVER_TITLE = "What a client leaves to the slice after its own"
_WORDS = {"above": "more", "below": "less", "equal": "equal within the margin", "open": "open"}


def sections(answers: Answers | None) -> list[Section]:
    """The tables of a run that was played in turns; empty for other runs."""
    if answers is None:
        return []
    pairs = [section for group in answers.groups if (section := _pairs(group))]
    stolen = [_steal(answers.steal)] if answers.steal else []
    return [*pairs, *map(_carry_over, answers.carry_over), *stolen]


def _pairs(group: GroupAnswer) -> Section | None:
    question = group.question
    rows = [
        _pair_row(contrast, question)
        for ranking in group.rankings
        for contrast in ranking.pairs
        if contrast.ratio is not None
    ]
    if not rows:
        return None
    contrasts = [contrast for ranking in group.rankings for contrast in ranking.pairs]
    gaps = [text for contrast in contrasts if (text := gap_text(contrast, question))]
    return Section(
        title=f"Every pair, {question.workload} · {question.load} · {question.common}",
        topic="rounds",
        columns=["figure", "first", "second", "first / second", "typical slice", "answer", "over"],
        rows=rows,
        notes=gaps,
        prose=True,
    )


def _pair_row(contrast: RoundContrast, question: Question) -> list[str]:
    scope = "within" if contrast.scope == "within" else "over"
    return [
        figure_words(contrast.figure),
        question.name(contrast.first),
        question.name(contrast.second),
        ratio_words(contrast.ratio) if contrast.ratio else "–",
        ratio_words(contrast.typical) if contrast.typical else "–",
        _WORDS[contrast.answer],
        f"{scope} {contrast.sittings} sittings",
    ]


def _carry_over(table: CarryOverTable) -> Section:
    rows = [
        [
            f"{arm.cell.client} · {arm.cell.server}",
            ratio_words(arm.successor),
            _cores(arm.idle_cores_during),
            _cores(arm.idle_cores_after),
        ]
        for arm in table.arms
    ]
    return Section(
        title=CARRY_OVER_TITLE,
        topic="rounds",
        columns=[
            "client",
            "rate of the next slice",
            "idle clients' CPU during its slices",
            "idle clients' CPU after them",
        ],
        rows=rows,
        notes=carry_over_texts(table),
    )


def _steal(steal: Steal) -> Section:
    rows = [
        [
            f"{arm.cell.client} · {arm.cell.server}",
            f"{arm.stolen} of {arm.slices}",
            f"{100 * arm.share:.2f} %",
            f"{100 * arm.slower - 100:.2f} %",
        ]
        for arm in steal.arms
    ]
    return Section(
        title="CPU time that the hypervisor took",
        topic="rounds",
        columns=["client", "slices with steal", "share of their time", "slower by at most"],
        rows=rows,
        notes=[steal_text(steal)],
    )


def _cores(cores: float | None) -> str:
    return "–" if cores is None else f"{100 * cores:.2f} %"
