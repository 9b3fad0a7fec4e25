"""The answers in plain English: settled ones, open ones, and the sittings that these still need."""

import math
from collections.abc import Sequence

from cachemark.analysis.number_format import count_of, hidden_by, interval
from cachemark.analysis.rounds.answers import Answers, Ranking, RateAndCpu
from cachemark.analysis.rounds.carry_over import CarryOverTable
from cachemark.analysis.rounds.drift import ArmDrift
from cachemark.analysis.rounds.halves import SliceHalves
from cachemark.analysis.rounds.looks import MAX_SITTINGS, StopRule
from cachemark.analysis.rounds.questions import Question
from cachemark.analysis.rounds.steal import ArmSteal
from cachemark.analysis.statistics import ALPHA, Comparison, Interval

_BEST = {
    "rate": "the highest rate",
    "client-cpu": "the least client CPU time per operation",
    "server-cpu": "the least server CPU time per operation",
}
_WHAT = {
    "rate": "rate",
    "client-cpu": "client CPU time per operation",
    "server-cpu": "server CPU time per operation",
}


# An interval that is wider than this, in percent either way, says nothing.
_SAYS_NOTHING = 100
_LONGER = "play longer slices or lead-ins (--set rounds.slice_ms=…, rounds.lead_in_percent=…)."
_AWAKE = "keep CPUs awake (--set awake=true), or "


def best_words(figure: str) -> str:
    """The merit of the first of a ranking, such as `the highest rate` or `the lowest p99`."""
    return _BEST.get(figure, f"the lowest {figure}")


def figure_words(figure: str) -> str:
    """A figure within a sentence."""
    return _WHAT.get(figure, figure)


def ratio_words(ratio: Interval) -> str:
    """Such as `1.49 (1.44–1.54)`; three digits where the ratio is near 1."""
    return interval(ratio, "{:.3f}" if abs(ratio.value - 1) < 0.1 else "{:.2f}")


def spread_words(of: Comparison) -> str:
    """The range of the single sittings' ratios, with a mark where one makes most of the variance.

    A dash where a figure has no ratio in a single sitting, as percentiles of all together.
    """
    if of.spread is None:
        return "–"
    form = "{:.3f}" if max(of.spread) < 1.1 and min(of.spread) > 0.9 else "{:.2f}"
    low, high = map(form.format, of.spread)
    return f"{low}–{high}{'*' if of.one_tells_most else ''}"


def plus_minus_percent(ratio: Interval) -> float | None:
    """How far an interval goes either way, in percent; None without an interval."""
    if ratio.low is None or ratio.high is None or ratio.low <= 0:
        return None
    return 100 * math.sqrt(ratio.high / ratio.low) - 100


def lead_text(ranking: Ranking, question: Question, of: Answers, sitting_s: float = 0) -> str:
    """A sentence about the first by a figure: its lead, and whether the lead is settled."""
    lead = ranking.lead
    if lead is None or lead.ratio is None:
        return _without_lead(ranking, question, of.rule, sitting_s)
    first, second = question.name(lead.first), question.name(lead.second)
    best, ratio = best_words(ranking.figure), ratio_words(lead.ratio)
    whose, over = _of_libraries(ranking), count_of(lead.count, lead.unit)
    ahead = f"{first} has {best}{whose}: {ratio} × {second}"
    if lead.scope == "within":
        wanted = max(of.rule.first, of.rule.least)
        longer = _minutes_words(wanted - lead.count, sitting_s)
        takes = f"{count_of(wanted, lead.unit)}{longer}"
        return f"Within {over}, {ahead}. That is no answer yet: it takes {takes}."
    if of.answered_at == 0:
        when = f"{of.rule.first}{_minutes_words(of.rule.first - lead.count, sitting_s)}"
        return f"So far, after {over}, {ahead}. The first answer comes after {when}."
    if lead.answer == "equal":
        words = f"equal in {figure_words(ranking.figure)} within {100 * of.rule.margin:g} %"
        return f"{first} and {second}, the first two{whose}, are {words}: {ratio} ×."
    if lead.answer == "open":
        reason = open_words(lead, of.rule, sitting_s)
        return f"{first} is first{whose} and {second} second, but {reason}"
    return f"{ahead}, the second.{_early(lead)}"


def _of_libraries(ranking: Ranking) -> str:
    """` of the libraries` if the yardstick, which is no choice, is the top row; else empty."""
    sign = 1 if ranking.more_is_better else -1
    best = sign * ranking.places[0].value
    return " of the libraries" if any(sign * of.value > best for of in ranking.beside) else ""


def _without_lead(ranking: Ranking, question: Question, rule: StopRule, sitting_s: float) -> str:
    if ranking.no_first:
        return f"No first is named: {no_first_text(ranking, question, rule, sitting_s)}"
    if len(ranking.places) == 1:
        return f"Only {ranking.places[0].name} has this figure."
    return "No answer: " + (ranking.lead.why if ranking.lead else "no figures") + "."


def no_first_text(
    ranking: Ranking, question: Question, rule: StopRule, sitting_s: float = 0
) -> str:
    """Why no first is named, and the first of each set as far as that is settled."""
    return f"{_no_first(ranking, question, rule, sitting_s)}{_of_sets(ranking, question)}"


def _no_first(ranking: Ranking, question: Question, rule: StopRule, sitting_s: float) -> str:
    if ranking.no_first == "apart":
        return "some of them have no sitting in common, and no reference."
    if ranking.no_first == "circle":
        return "each of those at the top is behind another one where both played."
    undecided = [of for of in ranking.against if of.answer != "better"]
    longest = max(undecided, key=lambda of: of.needed or MAX_SITTINGS)
    first, other = question.name(longest.first), question.name(longest.second)
    several = f" and {len(undecided) - 1} more" if len(undecided) > 1 else ""
    if longest.through_reference:
        reason = f"{first} never met {other}{several} in a sitting, and"
    else:
        reason = f"{first} is not shown to be ahead of {other}{several}:"
    return f"{reason} {first} to {other} is {open_words(longest, rule, sitting_s)}"


def set_leaders(ranking: Ranking, question: Question) -> list[str]:
    """The first of each set whose lead over the second of the set is settled."""
    return [question.name(of.first) for of in ranking.set_leads if of.answer == "better"]


def _of_sets(ranking: Ranking, question: Question) -> str:
    if not ranking.set_leads:
        return ""
    leaders = set_leaders(ranking, question)
    parts = [
        f"{question.name(of.first)} {ratio_words(of.ratio)} × {question.name(of.second)}"
        for of in ranking.set_leads
        if of.ratio is not None and question.name(of.first) in leaders
    ]
    if not parts:
        return f" No lead within one of the {len(ranking.set_leads)} sets is settled either."
    return f" Settled within their sets by {figure_words(ranking.figure)}: {', '.join(parts)}."


def open_words(comparison: Comparison, rule: StopRule, sitting_s: float = 0) -> str:
    """A sentence about an open pair, and the sittings that would settle it."""
    ratio = comparison.ratio
    if ratio is None:
        return f"not settled: {comparison.why}."
    width = plus_minus_percent(ratio)
    if width is not None and width > _SAYS_NOTHING:
        return _too_few(comparison, ratio, rule)
    around = f", ±{width:.1f} %" if width is not None else ""
    more = more_words(comparison, rule, sitting_s)
    return f"not settled: {ratio_words(ratio)} ×{around}{more}."


def _too_few(of: Comparison, ratio: Interval, rule: StopRule) -> str:
    """A sentence for an interval without information, with the sittings that would do."""
    enough = f"about {of.narrow_at}" if of.narrow_at else f"more than {MAX_SITTINGS}"
    return (
        f"not settled: {ratio.value:.2f} ×. {count_of(of.count, of.unit)} cannot give an "
        f"interval here: with this variation, ±{100 * rule.margin:g} % takes {enough} {of.unit}s."
    )


def more_words(comparison: Comparison, rule: StopRule, sitting_s: float = 0) -> str:
    """How much longer a run must be; `sitting_s` is how long a sitting takes, 0 if not known."""
    if comparison.scope == "within":
        more = max(1, rule.first - comparison.count)
    elif comparison.within_own_error:
        return f"; {hidden_by(comparison.bound)} are within the instrument's own error"
    elif comparison.needed is None:
        return f"; more than {MAX_SITTINGS} {comparison.unit}s" if comparison.tested else ""
    else:
        more = max(1, comparison.needed - comparison.count)
    unless = "" if comparison.scope == "within" else ", unless the truth is near the margin"
    if sitting_s <= 0:
        return f", about {more} more {comparison.unit}{'s' if more > 1 else ''}{unless}"
    return f"{_minutes_words(more, sitting_s)}{unless}"


def _minutes_words(sittings: int, sitting_s: float) -> str:
    if sitting_s <= 0 or sittings <= 0:
        return ""
    minutes = math.ceil(sittings * sitting_s / 60)
    return f", about {minutes} more minute{'s' if minutes > 1 else ''}"


def pair_text(
    comparison: Comparison, question: Question, rule: StopRule, sitting_s: float = 0
) -> str:
    """A pair of a family in one sentence."""
    first, second = question.name(comparison.first), question.name(comparison.second)
    what = figure_words(comparison.figure)
    if comparison.ratio is None:
        return f"{what}, {first} and {second}: {comparison.why}."
    ratio = ratio_words(comparison.ratio)
    if comparison.answer == "open":
        return f"{what}, {first} to {second}: {open_words(comparison, rule, sitting_s)}"
    if comparison.answer == "equal":
        return f"{what}, {first} to {second}: equal within {100 * rule.margin:g} %, {ratio} ×."
    return f"{what}, {first} to {second}: {ratio} ×.{_early(comparison)}"


def _early(comparison: Comparison) -> str:
    if not comparison.stopped_early:
        return ""
    return " (It was answered early, so the ratio may be a little too far from 1.)"


def twice_text(ranking: Ranking, question: Question) -> str:
    """The A/A test: what is within the instrument's own error, and whether the lead is beyond it.

    Empty if no client was played twice.
    """
    twice = ranking.twice
    if twice is None or twice.ratio is None:
        return ""
    text = f"{question.name(twice.second)} played twice: {ratio_words(twice.ratio)} × itself"
    if twice.scope == "within" or ranking.bound <= 1:
        return f"{text}, within {count_of(twice.count, twice.unit)}."
    return (
        f"{text}. {hidden_by(ranking.bound).capitalize()} are within the instrument's own error on"
        f" this machine{_lead_and_bound(ranking)}."
    )


def _lead_and_bound(ranking: Ranking) -> str:
    lead = ranking.lead
    if lead is None or lead.ratio is None or lead.ratio.value <= 0:
        return ""
    factor = max(lead.ratio.value, 1 / lead.ratio.value)
    size = f"{100 * factor - 100:.{0 if factor > 1.1 else 1}f} %"
    if factor <= ranking.bound:
        return f", and so is the lead of {size}"
    return f"; the lead of {size} is not" if factor > lead.bound else ""


def gap_text(comparison: Comparison, question: Question) -> str:
    """A sentence about the typical slice, if it differs from the totals; else empty."""
    if not comparison.gap or comparison.typical is None or comparison.ratio is None:
        return ""
    first, second = question.name(comparison.first), question.name(comparison.second)
    return (
        f"In the typical slice, {first} is {ratio_words(comparison.typical)} × {second} in"
        f" {figure_words(comparison.figure)}; in total it is {ratio_words(comparison.ratio)} ×."
        " Rare slices that are unlike the others make the difference."
    )


def rate_and_cpu_text(of: RateAndCpu, question: Question) -> str:
    """Both ratios of a pair of which rate and CPU time do not say the same; else empty."""
    if of.verdict != "disagree" or of.rate.ratio is None or of.cpu.ratio is None:
        return ""
    rate, cpu = (
        (of.rate, of.cpu) if of.rate.answer == "better" else (of.rate.reversed(), of.cpu.reversed())
    )
    first, second = question.name(rate.first), question.name(rate.second)
    if rate.ratio is None or cpu.ratio is None:
        return ""
    return (
        f"{first} has {ratio_words(rate.ratio)} × the rate of {second}, and needs"
        f" {ratio_words(cpu.ratio)} × its client CPU time per operation."
    )


def carry_over_texts(table: CarryOverTable) -> list[str]:
    """The arms that change the slice after their own, and what that does to ratios."""
    if not table.shown:
        return [f"No carry-over is shown; as estimated, it moves ratios by {_moves(table)}."]
    lines: list[str] = []
    for arm in table.arms:
        if arm.p_holm is not None and arm.p_holm < ALPHA:
            lines.append(
                f"The slice after {arm.cell.client} on {arm.cell.server} has"
                f" {ratio_words(arm.successor)} × the rate of those after the others."
            )
    return [*lines, f"As estimated, carry-over moves ratios by {_moves(table)}."]


def _moves(table: CarryOverTable) -> str:
    estimated = _percent(table.moves)
    if table.moves_at_most is None:
        return estimated
    return f"{estimated}, and by at most {_percent(table.moves_at_most)} (95 %)"


def gain_texts(drifts: Sequence[ArmDrift]) -> list[str]:
    """A sentence for the clients that still gained speed after their warm-up; at most one."""
    if not (of := [one for one in drifts if one.gains]):
        return []
    gains = [f"{one.cell.client} on {one.cell.server} {ratio_words(one.halves)}" for one in of]
    lost = ", or the other one lost speed" if of[0].of_two else ""
    text = f"Still gained speed{lost}: {' and '.join(gains)}, second half of the sittings ÷ first,"
    return [f"{text} beside the others. Play a longer warm-up (--set timing.warmup_ms=…)."]


def halves_texts(halves: Sequence[SliceHalves], *, may_sleep: bool) -> list[str]:
    """At most one sentence, for clients whose halves differ. `may_sleep`: CPUs were not awake."""
    of = sorted((one for one in halves if one.differ), key=lambda one: one.ratio.value)
    if not of:
        return []
    who = f"{len(of)} clients change" if of[1:] else "A client changes"
    lowest, highest = (
        f"{ratio_words(one.ratio)}{times} ({one.cell.client} on {one.cell.server})"
        for one, times in ((of[0], ""), (of[-1], " ×"))
    )
    cause = "Sleeping CPUs, or turns," if may_sleep else "Turns, or the machine,"
    return [
        f"{who} speed within {'their' if of[1:] else 'its'} slices: the second half has"
        f" {f'{lowest} to ' if of[1:] else ''}{highest} the rate of the first."
        f" {cause} cause this: {may_sleep * _AWAKE}{_LONGER}"
    ]


def steal_text(arms: Sequence[ArmSteal]) -> str:
    """How often the hypervisor took CPU time, and the most from which arm; empty for never."""
    slices, stolen = sum(arm.slices for arm in arms), sum(arm.stolen for arm in arms)
    most = max(arms, key=lambda arm: arm.share)
    return bool(stolen) * (
        f"The hypervisor took CPU time in {stolen} of {slices} slices: the most from"
        f" {most.cell.client} on {most.cell.server}, {100 * most.share:.1f} % of its time."
    )


def _percent(factor: float) -> str:
    return f"{100 * factor - 100:.1f} %"


def texts(of: Answers, sitting_s: float = 0) -> list[str]:
    """The answers of a run: for each question who is first, the A/A test, and what qualifies it."""
    lines: list[str] = []
    for group in of.groups:
        ranking = group.ranking(group.primary)
        if ranking is None:
            continue
        question = group.question
        if question.compares:
            lines.append(lead_text(ranking, question, of, sitting_s))
        lines += [rate_and_cpu_text(both, question) for both in group.rate_and_cpu]
        lines += [gap_text(ranking.lead, question) if ranking.lead else ""]
        lines.append(twice_text(ranking, question))
    return [line for line in lines if line]
