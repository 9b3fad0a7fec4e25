"""Answers of sittings in the report's groups: order, ratios and sentences."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from cachemark.analysis.rounds.answers import Answers, GroupAnswer, Place, Ranking, answers
from cachemark.analysis.rounds.pairs import PRIMARY_FIGURES, ROUND_FIGURES
from cachemark.analysis.rounds.questions import Question, asked, stop_rule
from cachemark.analysis.rounds.texts import (
    figure_words,
    gain_texts,
    halves_texts,
    ratio_words,
    steal_text,
    texts,
)
from cachemark.analysis.verdict.slice_bias import callers_of, length_for_ms, most_bias_percent
from cachemark.model.experiment import Experiment
from cachemark.model.experiment_checks import MAX_CLOSED_SLICE_MS
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import cells
from cachemark.report.model import Group, GroupKind

# The ranking of each question while a run goes on.
QuestionStandings = list[tuple[Question, Ranking]]
# Factors nearer to 1 come from rounding.
ROUNDING = 1e-9


def run_answers(
    experiment: Experiment,
    outcomes: Sequence[Outcome],
    *,
    final: bool = True,
    figures: Sequence[str] = tuple(ROUND_FIGURES),
) -> Answers:
    """The answers of a run, by its sittings or by its blocks of trials."""
    played = {outcome.trial.cell for outcome in outcomes if outcome.measure is not None}
    here = [cell for cell in cells(experiment) if cell in played]
    rule = stop_rule(experiment)
    return answers(outcomes, asked(experiment, here), rule, final=final, figures=figures)


def is_in_turns(outcomes: Sequence[Outcome]) -> bool:
    """Whether a run has sittings; its trials were played one after the other otherwise."""
    return any(outcome.rounds for outcome in outcomes)


def sentences(
    answers: Answers, outcomes: Sequence[Outcome], rank: GroupKind = "clients"
) -> list[str]:
    """The answers in words; each names its workload, load and what its cells share.

    Where clients are ranked (`rank`), the servers of several clients are one line.
    """
    seconds = sitting_seconds(outcomes)
    lines: list[str] = []
    several = len({answer.question.common for answer in _servers(answers)}) > 1
    several = several and rank == "clients"
    for answer in answers.groups:
        question = answer.question
        if several and question.kind == "servers":
            continue
        place = f"{question.workload}, {question.load}, {question.common}"
        own = texts(msgspec.structs.replace(answers, groups=[answer]), seconds)
        lines += [f"{place}: {line}" for line in own]
    if several:
        lines += _server_lines(_servers(answers))
    lines += gain_texts(answers.drifts)
    may_sleep = any(not (of.awake or of.hosts) for of in outcomes)
    lines += halves_texts(answers.halves, may_sleep=may_sleep)
    lines += bias_texts(outcomes)
    if any(arm.share > answers.rule.margin for arm in answers.steal):
        lines.append(f"{steal_text(answers.steal)} That is more than the margin.")
    return lines


def _servers(answers: Answers) -> list[GroupAnswer]:
    return [answer for answer in answers.groups if answer.question.kind == "servers"]


def _server_lines(groups: Sequence[GroupAnswer]) -> list[str]:
    """The servers of each client, on one line for each pair of servers and load."""
    parts: dict[str, list[str]] = {}
    for answer in groups:
        ranking, question = answer.ranking(answer.primary), answer.question
        for pair in ranking.pairs if ranking else []:
            if pair.ratio is None:
                continue
            place = f"{question.workload}, {question.load}"
            names = f"{pair.first.server} to {pair.second.server}"
            what = figure_words(pair.figure)
            known = {"open": " (open)", "equal": " (equal)"}.get(pair.answer, "")
            text = f"{question.common} {ratio_words(pair.ratio)}{known}"
            parts.setdefault(f"{place}, {what}, {names}", []).append(text)
    return [f"{head}: {', '.join(texts_of)}." for head, texts_of in parts.items()]


def standing(experiment: Experiment, outcomes: Sequence[Outcome]) -> QuestionStandings:
    """The ranking of each question after some whole blocks, by the figure that decides it.

    Either clients or servers are ranked: where there is a choice, the experiment decides.
    """
    if not is_in_turns(outcomes):
        return []
    answers = run_answers(experiment, outcomes, final=False, figures=PRIMARY_FIGURES)
    groups = [answer for answer in answers.groups if answer.question.compares]
    kinds = {answer.question.kind for answer in groups}
    ranked = experiment.rank if experiment.rank in kinds else next(iter(kinds), "clients")
    return [
        (answer.question, ranking)
        for answer in groups
        if (ranking := answer.ranking(answer.primary)) is not None
        and answer.question.kind == ranked
    ]


def standing_lines(ranked: QuestionStandings) -> list[str]:
    """Each ranking on a line: every cell relative to the first.

    Workload and load are named where several questions share the rest.
    """
    lines: list[str] = []
    alike = Counter(question.common for question, _ in ranked)
    for question, ranking in ranked:
        places = [
            f"{place.name} {ratio_words(place.to_winner.ratio)}"
            for place in ranking.places
            if place.to_winner is not None and place.to_winner.ratio is not None
        ]
        first = ranking.places[0].name
        known = f"{first} 1 · {' · '.join(places)}" if places else "no first yet"
        work = f"{question.workload}, {question.load}, " if alike[question.common] > 1 else ""
        lines.append(f"  {work}{question.common}: {known}")
    return lines


def ordered_places(ranking: Ranking) -> list[Place]:
    """The places of a ranking, with arms outside of it, such as yardsticks, in order."""
    return sorted([*ranking.places, *ranking.beside], key=lambda place: place_order(place, ranking))


def adjustment_notes(answers: Answers) -> list[str]:
    """The reasons why figures are not the plain means of a client's own sittings, if any."""
    adjusted = [
        (place, answer.question.twice)
        for answer in answers.groups
        if (ranking := answer.ranking(answer.primary)) is not None
        for place in (*ranking.places, *ranking.beside)
        if abs(place.value / place.own - 1) >= ROUNDING
    ]
    twice = dict.fromkeys(place.cell.client for place, of in adjusted if of and place.cell in of)
    notes = [
        f"{client} is played twice in each {answers.rule.unit}: its rate, and its ratios of rates, "
        "are the geometric means of both."
        for client in twice
    ]
    if any(place.cell.client not in twice for place, _ in adjusted):
        notes.append(
            f"Not all clients have valid figures of the same {answers.rule.unit}s, so the ranked "
            "figures are adjusted to one level that all have in common, and agree with the "
            "ratios."
        )
    return notes


def answer_of(group: Group, answers: Answers) -> GroupAnswer | None:
    """The answer to a group's question; None if there is none."""
    key = (group.kind, group.common, group.workload, group.load)
    for answer in answers.groups:
        question = answer.question
        if (question.kind, question.common, question.workload, question.load) == key:
            return answer
    return None


def place_order(place: Place | None, ranking: Ranking) -> tuple[int, int]:
    """The order of the ranking. Cells that are no choices stand before all cells that they are
    ahead of."""
    if place is None:
        return len(ranking.places), 1
    if place in ranking.places:
        return ranking.places.index(place), 1
    better = [of for of in ranking.places if (of.value > place.value) == ranking.more_is_better]
    return len(better), 0


def sitting_seconds(outcomes: Sequence[Outcome]) -> float:
    """How long a sitting took on average; 0 if that is not known."""
    longest: dict[tuple[int, int | None], int] = {}
    for outcome in outcomes:
        if outcome.rounds is not None:
            key = (outcome.trial.block, outcome.trial.sitting)
            longest[key] = max(longest.get(key, 0), outcome.wall_ms)
    blocks = {block for block, _ in longest}
    return sum(longest.values()) / len(blocks) / 1e3 if blocks else 0.0


_LIMIT_PERCENT = 1.0
# How much slower counted slices may be than the warm-up, where that decided their length.
_LIMIT_OF_GROWN_PERCENT = 2.0


def turns_text(outcomes: Sequence[Outcome], slice_ms: float) -> str:
    """How long turns were, such as `30 ms`, or `30 to 240 ms (as many callers need)`."""
    lengths_ms = sorted({of.rounds.length_us / 1e3 for of in outcomes if of.rounds})
    if not lengths_ms:
        return f"{slice_ms:g} ms"
    shortest, longest = lengths_ms[0], lengths_ms[-1]
    text = f"{longest:g} ms" if shortest == longest else f"{shortest:g} to {longest:g} ms"
    return f"{text} (as many callers need)" if longest > slice_ms else text


def bias_texts(outcomes: Sequence[Outcome]) -> list[str]:
    """A sentence for each cell whose counted slices were too short for its operations.

    Runs of earlier versions have slices that did not grow; in others, the operations of the counted
    slices may last longer than in the warm-up, which decided the length.
    """
    cells: dict[Cell, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.rounds and outcome.measure and outcome.verdict == "VALID":
            cells.setdefault(outcome.trial.cell, []).append(outcome)
    return [text for cell, of in cells.items() if (text := _bias_text(cell, of))]


def _bias_text(cell: Cell, outcomes: Sequence[Outcome]) -> str:
    slices = [of.rounds.slices for of in outcomes if of.rounds]
    callers, rounds = callers_of(outcomes[0].load), outcomes[0].rounds
    ops = sum(sum(of.ops) + sum(of.errors) for of in slices)
    if rounds is None or callers == 1 or ops == 0 or rounds.length_us <= rounds.lead_in_us:
        return ""
    operation_ns = callers * sum(sum(of.elapsed_ns) for of in slices) / ops
    counted_part = 1 - rounds.lead_in_us / rounds.length_us
    bias = most_bias_percent(operation_ns, 1000 * rounds.length_us * counted_part)
    if bias <= (_LIMIT_OF_GROWN_PERCENT if rounds.operation_ns else _LIMIT_PERCENT):
        return ""
    needed_ms = length_for_ms(operation_ns, counted_part)
    remedy = (
        f"Slices of {needed_ms} ms (--set rounds.slice_ms={needed_ms}) keep that below 1 %."
        if needed_ms <= MAX_CLOSED_SLICE_MS
        else "Trials (--set design=trials) have no such bias."
    )
    return (
        f"{cell.client} on {cell.server} ({cell.load}) has {callers} callers. If they share a CPU"
        f" in random order, slices of {rounds.length_us / 1e3:g} ms give a rate that is up to"
        f" {bias:.1f} % too high. {remedy}"
    )
