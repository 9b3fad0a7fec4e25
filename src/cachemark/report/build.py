"""Outcomes → report: who is fastest in each group, what could not run, what it ran on."""

from __future__ import annotations

from collections.abc import Sequence

from cachemark.experiment import Experiment
from cachemark.outcome import Outcome
from cachemark.report import emcache
from cachemark.report.format import interval, number
from cachemark.report.value import Absence, Group, Report, Row, Section
from cachemark.statistics import CellSummary, Comparison, compare, summarise
from cachemark.store import RunHeader

# A suite that was published before has a section in the shape of the original.
_SECTIONS = {"emcache": emcache.sections}


def build(header: RunHeader, outcomes: Sequence[Outcome]) -> Report:
    """The report of a run."""
    experiment = header.experiment
    summaries = summarise(outcomes)
    groups = _groups(summaries, outcomes, experiment.margin_percent)
    return Report(
        header=header,
        answers=[_answer(group) for group in groups if _ranked(group)],
        groups=groups,
        absences=_absences(summaries),
        rejected=_rejected(summaries),
        notes=_notes(experiment, summaries),
        environment=_environment(header),
        sections=_sections(experiment, outcomes),
    )


def _sections(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[Section]:
    made = _SECTIONS.get(experiment.name)
    return made(outcomes) if made else []


def _groups(
    summaries: list[CellSummary], outcomes: Sequence[Outcome], margin_percent: float
) -> list[Group]:
    together: dict[tuple[str, str, str], list[CellSummary]] = {}
    for summary in summaries:
        cell = summary.cell
        if not summary.unsupported:
            key = (cell.workload, cell.load, cell.server)
            together.setdefault(key, []).append(summary)
    return [_group(members, outcomes, margin_percent) for _, members in sorted(together.items())]


def _group(members: list[CellSummary], outcomes: Sequence[Outcome], margin_percent: float) -> Group:
    members = sorted(members, key=_rate, reverse=True)
    first = members[0]
    comparisons: dict[str, Comparison] = {}
    if first.total:
        found = compare(outcomes, first.cell.client, first.cell, margin_percent)
        comparisons = {comparison.client: comparison for comparison in found}
    return Group(
        server=first.cell.server,
        server_version=next((m.server_version for m in members if m.server_version), ""),
        workload=first.cell.workload,
        load=first.cell.load,
        rows=[
            Row(
                summary=member,
                comparison=comparisons.get(member.cell.client),
                fastest=member is first and member.total is not None,
            )
            for member in members
        ],
    )


def _rate(summary: CellSummary) -> float:
    return summary.total.rate.value if summary.total else -1.0


def _ranked(group: Group) -> list[Row]:
    """The rows to choose from: the native client is a yardstick where libraries are compared."""
    measured = [row for row in group.rows if row.summary.total]
    libraries = [row for row in measured if row.summary.cell.client != "native"]
    return libraries or measured


def _answer(group: Group) -> str:
    place = f"{group.workload}, {group.load}, against {group.server}"
    rows = _ranked(group)
    best = rows[0].summary
    rate = f"{number(best.total.rate.value)} ops/s" if best.total else ""
    if len(rows) == 1:
        return f"{place}: {best.cell.client} does {rate}."
    second = rows[1]
    lead = _lead(rows[0], second)
    return f"{place}: {best.cell.client} is first with {rate}; {lead}."


def _lead(first: Row, second: Row) -> str:
    name = second.summary.cell.client
    comparison = second.comparison
    if comparison is None or not first.fastest:
        # Both were compared with the yardstick, so their own ratio is shown without an answer.
        ours, theirs = first.summary.total, second.summary.total
        if ours is None or theirs is None:
            return f"{name} is second"
        return f"{name}, second, does {theirs.rate.value / ours.rate.value:.2f} × as many"
    part = f"{name}, second, does {interval(comparison.ratio, '{:.2f}')} × as many"
    if comparison.answer in ("equivalent", "inconclusive"):
        return f"{part}: {_MEANING[comparison.answer]}"
    return part


_MEANING = {
    "equivalent": "no difference beyond the margin",
    "inconclusive": "no difference shown",
}


def _absences(summaries: list[CellSummary]) -> list[Absence]:
    """Each client once where it is missing everywhere, else each cell that it cannot do."""
    by_client: dict[str, list[CellSummary]] = {}
    for summary in summaries:
        by_client.setdefault(summary.cell.client, []).append(summary)
    absences: dict[tuple[str, str], Absence] = {}
    for client, members in by_client.items():
        everywhere = all(member.unsupported for member in members)
        for member in members:
            if not member.unsupported:
                continue
            cell = member.cell
            what = client if everywhere else f"{client} · {cell.workload} · {cell.load}"
            reason = member.unsupported.removeprefix(f"{client}: ")
            absence = Absence(what=what, reason=reason, remedy=member.remedy)
            absences.setdefault((what, reason), absence)
    return list(absences.values())


def _rejected(summaries: list[CellSummary]) -> list[str]:
    return [
        f"{s.cell.client} · {s.cell.server} · {s.cell.workload} · {s.cell.load}: "
        f"{count} of {s.trials} trials {reason}"
        for s in summaries
        for reason, count in s.rejected.items()
    ]


def _notes(experiment: Experiment, summaries: list[CellSummary]) -> list[str]:
    notes: list[str] = []
    if any(load.schedule == "closed" for load in experiment.loads):
        notes.append(
            "Closed loop: response times exclude waiting to send, so they are not those under load."
        )
    if experiment.blocks < 5:
        notes.append(
            f"{experiment.blocks} blocks are few: take 5 or more (--blocks) before you quote any."
        )
    for summary in summaries:
        notes += [f"{summary.cell.client}: {note}" for note in summary.notes]
    return list(dict.fromkeys(notes))


def _environment(header: RunHeader) -> list[str]:
    host, experiment = header.host, header.experiment
    virtual = "virtual machine" if host.hypervisor else "no hypervisor"
    placement = experiment.placement
    return [
        f"{host.cpu_model or 'unknown CPU'}, {len(host.usable_cpus)} CPUs, {virtual}, "
        f"{host.memory_bytes / 2**30:.0f} GiB, {host.system}, Linux {host.kernel}",
        f"governor {host.governor or 'not readable'}, clock {host.clocksource}, "
        f"load {host.load_1min:.2f} at the start",
        f"client and server on one machine unless remote; CPUs: server {placement.server}, "
        f"worker {placement.worker}",
        f"cachemark {header.cachemark}, Python {host.python}, {experiment.blocks} blocks in "
        f"random order, seed {experiment.seed}, {header.created_at}",
    ]
