"""The answer of `cachemark why` as a document: sentences and tables."""

from collections.abc import Sequence
from functools import cache
from importlib import resources

import msgspec

from cachemark.analysis.why.causes import WhyFinding, number, rounded
from cachemark.analysis.why.estimate import CountEstimate, estimate_of
from cachemark.analysis.why.profile import ProfileShares
from cachemark.analysis.why.report import Difference, WhyReport
from cachemark.analysis.why.shares import TimeShares
from cachemark.model.counts import CountedWork
from cachemark.report.document import Document, DocumentPart, Table, plain_table


def document(of: WhyReport) -> Document:
    """The counts: what was counted, then the sentences and the table of each kind of operation."""
    lines, kinds = head(of), dict.fromkeys(each.kind for each in of.counted)
    first = DocumentPart(paragraphs=lines, on="console")
    parts = [first, *(part for kind in kinds for part in _parts(of, kind))]
    return Document(title="Why", lines=lines, parts=parts)


def _parts(of: WhyReport, kind: str) -> list[DocumentPart]:
    counts, all_works = _counted(of, kind), [each for each in of.counted if each.kind == kind]
    failures = [
        f"{each.client} was not counted: {each.failure}." for each in all_works if each.failure
    ]
    found = [text for each in of.differences if each.kind == kind for text in sentences(each)]
    return [
        DocumentPart(title=kind, table=_table(counts) if counts else None, whole=True),
        DocumentPart(items=[*failures, *found]),
        *_profile([each for each in of.shares if each.kind == kind]),
    ]


def _profile(shares: Sequence[ProfileShares]) -> list[DocumentPart]:
    """The profiles of one kind: the share of each class, and the library's heaviest functions."""
    taken = [each for each in shares if not each.failure]
    classes = dict.fromkeys(name for each in taken for name in each.classes)
    rows = [[name, *(_share(each.classes.get(name)) for each in taken)] for name in classes]
    rows.append(["samples", *(f"{each.samples:,}" for each in taken)])
    titles = ["CPU time in samples", *(f"{each.client} ({each.sampler})" for each in taken)]
    heaviest = [
        f"{each.client}: most of the library's time is in "
        f"{', '.join(f'{name} {_share(share)}' for name, share in each.functions.items())}."
        for each in taken
        if each.functions
    ]
    failures = [f"{each.client} has no profile: {each.failure}." for each in shares if each.failure]
    table = plain_table(titles, rows) if taken else None
    return [DocumentPart(table=table, whole=True), DocumentPart(items=[*failures, *heaviest])]


def _share(of: CountEstimate | None) -> str:
    """A share; a dash of no sample, as some samplers cannot see every class."""
    if of is None:
        return "–"
    return f"{of.value:.0f} ±{of.error:.0f} %" if of.error else f"{of.value:.0f} %"


def head(of: WhyReport) -> list[str]:
    """The head of the answer: the counts, and the reasons for missing ones."""
    versions = {each.client: each.version or "unknown" for each in of.counted}
    what = f"for one operation against {of.server}"
    if of.player:
        what = f"of servers for one operation of {of.player}"
    return [
        f"Counts {what}, {of.repeat} times, with one caller; {of.work}.",
        f"Versions: {', '.join(f'{client} {version}' for client, version in versions.items())}.",
        "± is the error (99 %) over the repetitions.",
        *of.missing,
        *_absences(of),
    ]


def sentences(of: Difference) -> list[str]:
    """The differences in one kind of operation; first the causes of who takes more CPU time."""
    time = _time(of.time) or [f"{of.client} and {of.base}: their CPU time is not known to differ."]
    found = [*of.findings, *of.findings_of_base]
    if of.time and of.time.client == of.base:
        found = [*of.findings_of_base, *of.findings]
    none = f"{of.client} and {of.base}: the counts show no difference that a rule names."
    return [*([] if found else [none]), *time, *map(_sentence, found)]


def first_sentences(of: WhyReport) -> list[str]:
    """The time and the first cause of the kinds that differ; if none does, each kind says so."""
    differing = [
        each for each in of.differences if each.time or each.findings or each.findings_of_base
    ]
    lines: list[str] = []
    for each in differing or of.differences:
        named = each.findings or each.findings_of_base
        words = [*_time(each.time), sentences(each)[1]] if named else sentences(each)
        lines.append(f"Why, for each {each.kind}: {' '.join(words)}")
    return lines


def _time(of: TimeShares | None) -> list[str]:
    """How the CPU time between two clients is shared out; empty if it is not known to differ."""
    if of is None:
        return []
    own, total, unshared = of.own_code, of.more, ""
    less, beyond = own.value < -own.error, own.value > max(own.error, total.value)
    size = _us(msgspec.structs.replace(own, value=-own.value)) if less else _part(own, total)
    told = f"{size} {'less' if less else 'of them'} in its own code"
    if of.explained is None and beyond:
        told, kernel = f"{_us(own)} more in its own code", "and less in the kernel"
    elif of.explained is None or of.unexplained is None:
        kernel = f"{'all of it' if less else 'the rest'} in the kernel"
        unshared = " That is less than the calls below cost by themselves, so it is not shared out."
    else:
        named = of.explained.value or of.explained.error
        kernel = f"{_part(of.explained, total)} by the calls below, " if named else ""
        kernel += f"{_part(of.unexplained, total)} unexplained{'' if named else ', in the kernel'}"
    parts = f"{kernel}, but {told}" if less else f"{told}, {kernel}"
    return [f"{of.client} takes {_us(total)} more CPU time than {of.other}: {parts}.{unshared}"]


def _part(of: CountEstimate, total: CountEstimate) -> str:
    """The size of a part of a total; within its error, only the upper end is known."""
    if abs(of.value) > of.error or not of.error:
        return _us(of)
    most = min(of.value + of.error, total.value + total.error)
    return f"at most {_us(msgspec.structs.replace(of, value=most, error=0.0))}"


def _us(of: CountEstimate) -> str:
    return _cell(of, "cpu_us")


def _sentence(of: WhyFinding) -> str:
    counts = f"{number(of.count)} against {number(of.other_count)} of {of.other}"
    counts += "" if number(of.covered) == "0" else f", {number(of.covered)} by other causes"
    costs = ((of.cost_us, "in the kernel"), (of.own_us, "in its own code"))
    cost = "".join(f", {_us(us)} {place}" for us, place in costs if us and us.value > us.error)
    remedy = f" Remedy: {of.remedy}." if of.remedy else ""
    return f"{of.client} {of.words} ({counts}{cost}).{remedy}"


class _Figures(msgspec.Struct, frozen=True):
    titles: dict[str, str]
    absent: dict[str, list[str]]


@cache
def _figures() -> _Figures:
    text = resources.files("cachemark.report.why").joinpath("figures.toml").read_bytes()
    return msgspec.toml.decode(text, type=_Figures)


# Events that are rarer than one in twenty operations do not belong to an operation; work does.
_LEAST_SHOWN = 0.05


def _rows(counted: Sequence[CountedWork]) -> dict[str, list[CountEstimate | None]]:
    """The figures of these clients, without those that are 0 for all."""
    return {
        figure: row
        for figure in _figures().titles
        for row in [[estimate_of(each.repetitions, figure) for each in counted]]
        if any(each and (abs(each.value) >= _LEAST_SHOWN or figure == "user_us") for each in row)
    }


def _table(counted: Sequence[CountedWork]) -> Table:
    rows = [
        [_figures().titles[figure], *(_cell(each, figure) for each in row)]
        for figure, row in _rows(counted).items()
    ]
    return plain_table(["for one operation", *(each.client for each in counted)], rows)


def _absences(of: WhyReport) -> list[str]:
    """The reasons of the dashes in the tables."""
    lines: list[str] = []
    for reason, figures in _figures().absent.items():
        without = dict.fromkeys(
            each.client
            for kind in {each.kind for each in of.counted}
            for counted in [_counted(of, kind)]
            for figure, row in _rows(counted).items()
            for each, cell in zip(counted, row, strict=True)
            if figure in figures and cell is None
        )
        lines += [f"Not counted (–): {reason.format(', '.join(without))}."] if without else []
    return lines


def _counted(of: WhyReport, kind: str) -> list[CountedWork]:
    return [each for each in of.counted if each.kind == kind and not each.failure]


def _cell(found: CountEstimate | None, figure: str) -> str:
    """A figure with its error, of which an error that rounds to 0 is left out."""
    if found is None:
        return "–"
    us = figure.endswith("_us")
    decimals = 1 if abs(found.value) >= (0.5 if us else 100) else 2
    value, error = rounded(found.value, decimals), rounded(found.error, decimals)
    shown = value if error == "0" else f"{value} ±{error}"
    return f"{shown} µs" if us else shown
