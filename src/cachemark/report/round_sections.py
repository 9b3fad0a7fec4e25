"""Tables about a run's sittings: every pair by every figure, and carry-over."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from cachemark.analysis.number_format import count_of, signed_interval
from cachemark.analysis.rounds.answers import Answers, GroupAnswer
from cachemark.analysis.rounds.carry_over import CarryOver, CarryOverTable
from cachemark.analysis.rounds.drift import ArmDrift
from cachemark.analysis.rounds.halves import SliceHalves
from cachemark.analysis.rounds.questions import Question
from cachemark.analysis.rounds.steal import ArmSteal
from cachemark.analysis.rounds.texts import (
    carry_over_texts,
    figure_words,
    gap_text,
    ratio_words,
    spread_words,
    steal_text,
)
from cachemark.analysis.statistics import Comparison
from cachemark.report.model import CarryOverSection, Section

_Arm = TypeVar("_Arm", CarryOver, ArmDrift, SliceHalves, ArmSteal)
CARRY_OVER_TITLE = "What a client leaves to the slice after its own"


def sections(answers: Answers | None) -> list[Section]:
    """The tables of a run that was played in turns; empty for other runs."""
    if answers is None:
        return []
    pairs = [section for group in answers.groups if (section := _pairs(group))]
    stolen = [_steal(answers.steal)] if answers.steal else []
    drift = [_drift(answers.drifts)] if answers.drifts else []
    halves = [_halves(answers.halves)] if answers.halves else []
    return [*pairs, *map(_carry_over, answers.carry_over), *halves, *drift, *stolen]


def _pairs(group: GroupAnswer) -> Section | None:
    question = group.question
    rows = [
        _pair_row(comparison, question)
        for ranking in group.rankings
        for comparison in ranking.pairs
        if comparison.ratio is not None
    ]
    if not rows:
        return None
    pairs = [comparison for ranking in group.rankings for comparison in ranking.pairs]
    gaps = [text for comparison in pairs if (text := gap_text(comparison, question))]
    return Section(
        title=f"Every pair, {question.workload} · {question.load} · {question.common}",
        topic="rounds",
        columns=[
            "figure",
            "first",
            "second",
            "first / second",
            "single sittings",
            "typical slice",
            "the first is",
            "over",
        ],
        rows=rows,
        notes=[*gaps, *_notes(pairs)],
        prose=True,
    )


def _pair_row(of: Comparison, question: Question) -> list[str]:
    return [
        figure_words(of.figure),
        question.name(of.first),
        question.name(of.second),
        ratio_words(of.ratio) if of.ratio else "–",
        spread_words(of),
        ratio_words(of.typical) if of.typical else "–",
        of.answer,
        f"{of.scope} {count_of(of.count, of.unit)}",
    ]


def _notes(pairs: list[Comparison]) -> list[str]:
    if not any(of.one_tells_most for of in pairs):
        return []
    return [
        "*: one sitting makes more than half of the variance. If such sittings are rare, the "
        "interval holds less often than it says: look at the range of the single sittings."
    ]


def _by_arm(
    title: str, arms: Iterable[_Arm], columns: Mapping[str, Callable[[_Arm], str]], notes: list[str]
) -> Section:
    """A row for each arm: its client and server, then the text of each column."""
    rows = [
        [f"{arm.cell.client} · {arm.cell.server}", *[text(arm) for text in columns.values()]]
        for arm in arms
    ]
    return Section(
        title=title, topic="rounds", columns=["client", *columns], rows=rows, notes=notes
    )


def _carry_over(table: CarryOverTable) -> Section:
    section = _by_arm(
        CARRY_OVER_TITLE,
        table.arms,
        {
            "rate of the next slice": lambda arm: ratio_words(arm.successor),
            "idle clients' CPU during its slices": lambda arm: _cores(arm.idle_cores_during),
            "idle clients' CPU after them": lambda arm: _cores(arm.idle_cores_after),
        },
        carry_over_texts(table),
    )
    return CarryOverSection(**msgspec.structs.asdict(section))


def _drift(drifts: list[ArmDrift]) -> Section:
    return _by_arm(
        "Changes beside the others",
        drifts,
        {
            "second half / first half": lambda of: ratio_words(of.halves),
            "% for 1 % of the others": lambda of: (
                signed_interval(of.slope, "{:.2f}") if of.slope else "–"
            ),
        },
        [
            "The second half of a sitting relative to the first, divided by the same of the median "
            "client: above 1, a client still gained speed when its warm-up was over.",
            "By how many percent a client's rate changed from sitting to sitting where the rate of "
            "the others changed by 1 %. Where this is not 1, its ratios hold for this machine in "
            "its state during the run. –: there are two clients, or the machine's speed changed by "
            "too little.",
        ],
    )


def _halves(halves: list[SliceHalves]) -> Section:
    return _by_arm(
        "What turns do to a client",
        halves,
        {
            "second half / first half of a slice": lambda of: ratio_words(of.ratio),
            "over": lambda of: count_of(of.sittings, "sitting"),
        },
        [
            "The rate in the second half of the counted part of slices, relative to the first. "
            "Above 1, a turn begins slowly, and the lead-in does not cover all of it: without "
            "turns, the client has a higher rate than the table says. A ratio that changes from "
            "half to half is no answer unless it is further from 1 than twice this change."
        ],
    )


def _steal(arms: list[ArmSteal]) -> Section:
    return _by_arm(
        "CPU time that slices did not get",
        arms,
        {
            "slices with steal": lambda arm: f"{arm.stolen} of {arm.slices}",
            "share of their time": lambda arm: f"{100 * arm.share:.2f} %",
            "delayed slices": lambda arm: f"{arm.delayed} of {arm.slices}",
        },
        [
            *filter(None, [steal_text(arms)]),
            "Delayed: threads of the client and its server waited for a CPU for longer than in the "
            "median of the client's slices, by more than 2 % of the slice.",
        ],
    )


def _cores(cores: float | None) -> str:
    return "–" if cores is None else f"{100 * cores:.2f} %"
