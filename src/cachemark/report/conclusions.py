"""The answer in one sentence, and one row for each group of clients."""

from collections import Counter

import msgspec

from cachemark.analysis.number_format import count_of, interval, number, time
from cachemark.analysis.statistics import Answer, Interval
from cachemark.report.model import Group, Metric, Report, ranked_figure
from cachemark.report.plots.ranking import is_unnamed, leader

_SHOWN: dict[Answer, str] = {"better": "settled", "equal": "equal"}


_NO_FIGURE = "No client has a valid figure."


class ConclusionRow(msgspec.Struct, frozen=True, kw_only=True):
    """The first client of a group, its lead, and the anchor of the group on the page."""

    anchor: str
    place: str
    first: str
    figure: str
    second: str
    ratio: str
    difference: str


def one_sentence(report: Report) -> str:
    """The answer in one sentence, for one or several groups."""
    return headline(report) or report.answers[0]


def first_of(report: Report) -> str:
    """The first clients, such as `native (3 of 4), c/libmemcached (1 of 4)`; empty without one."""
    if _is_too_early(report):
        return ""
    groups = _compared(report)
    firsts = Counter(first for group in groups if (first := leader(group))).most_common()
    if len(groups) == 1:
        return "".join(name for name, _ in firsts)
    return ", ".join(f"{name} ({times} of {len(groups)})" for name, times in firsts)


def _is_too_early(report: Report) -> bool:
    """Whether a run has too few sittings for any answer."""
    return report.rounds is not None and report.rounds.answered_at == 0


def _compared(report: Report) -> list[Group]:
    # A client that is alone, such as the only cache in the process, has no other to compare with.
    return [group for group in report.groups if len(group.rows) > 1] or report.groups


def headline(report: Report) -> str:
    """One sentence for all groups: how often each client is first, and how often that is settled.

    Empty for a search, and if only one group compares clients: it has a sentence of its own.
    A run that has too few sittings for any answer has no first.
    """
    rounds = report.rounds
    if rounds is not None and _is_too_early(report):
        played = count_of(rounds.sittings, "sitting")
        return f"No answer yet: it takes {rounds.rule.first} sittings, and this run has {played}."
    compared = _compared(report)
    firsts = Counter(first for group in compared if (first := leader(group)))
    if len(compared) == 1 or report.header.experiment.search:
        return ""
    unnamed = [group for group in compared if is_unnamed(group)]
    if not firsts:
        return f"No first is named{_of_sets(unnamed)}." if unnamed else _NO_FIGURE
    count = firsts.total() + len(unnamed)
    leads = [group.lead.answer for group in compared if group.lead and leader(group)]
    text = _firsts(firsts.most_common(), count)
    if unnamed:
        text = f"No first is named in {len(unnamed)} of {count}{_of_sets(unnamed)}; {text}"
    if not leads:
        return f"{text}."
    shown = leads.count("better")
    if not shown:
        return f"{text}; no lead over the second is settled."
    part = "every one" if shown == len(leads) else f"{shown} of {len(leads)}"
    return f"{text}; the lead over the second is settled in {part}."


def _of_sets(unnamed: list[Group]) -> str:
    """The first of each set of rounds, where that is settled; empty if it is nowhere."""
    leaders = dict.fromkeys(name for group in unnamed for name in group.set_leaders)
    return f" (first of their sets: {', '.join(leaders)})" if leaders else ""


def _firsts(firsts: list[tuple[str, int]], count: int) -> str:
    (most, times), *others = firsts
    if not others and times == count:
        every = "both" if count == 2 else f"all {count}"
        return f"{most} is first in {every} comparisons"
    text = [f"{most} is first in {times} of {count} comparisons"]
    text += [f"{who} in {times}" for who, times in others[:2]]
    rest = sum(times for _, times in others[2:])
    return ", ".join(text + ([f"others in {rest}"] if rest else []))


def conclusion_rows(report: Report, anchors: list[str]) -> list[ConclusionRow]:
    """One row for each group, in the report's order."""
    return [_row(group, anchor) for group, anchor in zip(report.groups, anchors, strict=True)]


def _row(group: Group, anchor: str) -> ConclusionRow:
    first = leader(group)
    of = next((ranked_figure(r.summary, group.metric) for r in group.rows if r.name == first), None)
    lead = group.lead
    behind = lead.reversed() if lead else None
    return ConclusionRow(
        anchor=anchor,
        place=f"{group.workload} · {group.load} · {group.common}",
        first=first or "–",
        figure=_figure(of, group.metric),
        second=group.name_of(lead.second) if lead and first else "–",
        ratio=interval(behind.ratio, "{:.2f}") if behind and behind.ratio else "–",
        difference=_SHOWN.get(lead.answer, "open") if lead and first else "–",
    )


def _figure(of: Interval | None, metric: Metric) -> str:
    if of is None:
        return "–"
    return f"{number(of.value)} ops/s" if metric == "rate" else f"p99 {time(of.value)}"
