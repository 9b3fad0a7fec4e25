"""Outcomes → report: the ranking of each group, the cells that could not run, the machine."""

import re
from collections.abc import Mapping, Sequence

from cachemark.analysis.giving_up import given_up, reason_without_ports
from cachemark.analysis.number_format import count_of
from cachemark.analysis.rounds.answers import Answers
from cachemark.analysis.statistics import (
    MIN_INTERVAL_TRIALS,
    CellSummary,
    ends_by_time,
    rejections,
    summarise,
    trials_of_cells,
)
from cachemark.analysis.trace_words import trace_differences
from cachemark.analysis.unseen_writes import lines_about_order
from cachemark.model.audit import Audit
from cachemark.model.calibration import Calibration
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import Skipped, is_repeat, trial_count, uses_rounds
from cachemark.model.run_header import RunHeader
from cachemark.report import audit as audited
from cachemark.report import (
    calibration,
    default_settings,
    hosts,
    noise_report,
    round_sections,
    rounds,
)
from cachemark.report.absences import find_absences
from cachemark.report.cells import cell_title
from cachemark.report.groups import alone_text, make_groups, was_played
from cachemark.report.model import Absence, Group, Report, Section, TrialRow
from cachemark.report.originals import emcache, facts, published
from cachemark.report.search_answer import search_answer
from cachemark.report.server_loads import refused_lines, server_lines, server_sections
from cachemark.report.trials import replay_lines, too_few, trial_rows, within_sections

# A number that is no part of a name such as p99.
_FIGURE = re.compile(r"(?<![\w.])\d[\d.,]*")


def build(
    header: RunHeader,
    outcomes: Sequence[Outcome],
    audit: Audit | None = None,
    calibrations: Sequence[Calibration] = (),
    own_settings: Mapping[str, str] | None = None,
) -> Report:
    """The report of a run; `audit` has the checks before its trials.

    `calibrations` are those kept beside it. `own_settings` says how the own settings of each
    library differ, by client id.
    """
    if header.experiment.search:
        return _search_report(header, outcomes, audit)
    return _grid_report(header, outcomes, audit, calibrations, own_settings or {})


def _grid_report(
    header: RunHeader,
    outcomes: Sequence[Outcome],
    audit: Audit | None,
    calibrations: Sequence[Calibration],
    own_settings: Mapping[str, str],
) -> Report:
    experiment, played = header.experiment, summarise(outcomes)
    summaries = [summary for summary in played if not is_repeat(summary.cell)]
    answers = rounds.run_answers(experiment, outcomes)
    groups = make_groups(summaries, answers, experiment)
    trials = trial_rows(outcomes)
    turns = rounds.turns_text(outcomes, experiment.rounds.slice_ms)
    in_turns = answers if rounds.is_in_turns(outcomes) else None
    told = sentences(answers, groups, outcomes, experiment)
    refused = refused_lines(experiment, summaries)
    return Report(
        header=header,
        answers=told + refused if any(len(group.rows) > 1 for group in groups) else refused + told,
        rounds=in_turns,
        turns=turns,
        groups=groups,
        absences=_absences(summaries),
        missing=[summary for summary in summaries if not was_played(summary)],
        rejected=[*_rejected(outcomes), *noise_report.withheld_lines(outcomes)],
        unverified=audited.unverified_lines(audit),
        notes=_grid_notes(experiment, summaries, outcomes, trials, answers),
        environment=_environment(header, turns),
        sections=[
            *default_settings.sections(experiment, summaries, outcomes, own_settings),
            *round_sections.sections(in_turns),
            *within_sections(summaries),
            *server_sections(experiment, summaries, outcomes),
            *_published_sections(header, outcomes, groups),
            *calibration.overhead_sections(experiment, summaries),
            *calibration.sections(experiment, calibrations, header.host.name),
            *audited.sections(audit),
            *hosts.generator_sections(outcomes),
            *hosts.sections(header, outcomes),
        ],
        trials=trials,
    )


def _grid_notes(
    experiment: Experiment,
    summaries: list[CellSummary],
    outcomes: Sequence[Outcome],
    trials: list[TrialRow],
    answers: Answers,
) -> list[str]:
    return [
        *_unplayed(experiment, outcomes),
        *lines_about_order(experiment),
        *replay_lines(experiment, trials),
        *_notes(experiment, summaries),
        *server_lines(summaries, outcomes),
        *_trace_notes(outcomes),
        *_rates_without_timeline(outcomes),
        *rounds.adjustment_notes(answers),
        *_disturbances(outcomes),
    ]


def sentences(
    answers: Answers, groups: list[Group], outcomes: Sequence[Outcome], experiment: Experiment
) -> list[str]:
    """The answers in words, about each group without a question, and about a busy machine."""
    alone = [
        alone_text(group)
        for group in groups
        if (answer := rounds.answer_of(group, answers)) is None
        or not (answer.rankings and answer.question.compares)
    ]
    return [
        *rounds.sentences(answers, outcomes, experiment.rank),
        *alone,
        *noise_report.loaded_lines(outcomes, searched=False),
        *noise_report.paused_lines(outcomes),
    ]


def _disturbances(outcomes: Sequence[Outcome]) -> list[str]:
    return [
        *noise_report.noise_notes(outcomes),
        *noise_report.stationarity_notes(outcomes),
        *noise_report.lag_notes(outcomes),
    ]


def _search_report(header: RunHeader, outcomes: Sequence[Outcome], audit: Audit | None) -> Report:
    """The report of a search: its answers and steps. Clients are not ranked at any one rate."""
    summaries = summarise(outcomes)
    answer = search_answer(header, outcomes, summaries)
    return Report(
        header=header,
        answers=[
            *(answer.sentences or ["Nothing was measured."]),
            *noise_report.loaded_lines(outcomes, searched=True),
        ],
        absences=_absences(summaries),
        unverified=audited.unverified_lines(audit),
        notes=[
            *lines_about_order(header.experiment),
            *noise_report.noise_notes(outcomes),
            *server_lines(summaries, outcomes),
        ],
        environment=_environment(header, ""),
        sections=[
            *answer.sections,
            *audited.sections(audit),
            *hosts.generator_sections(outcomes),
            *hosts.sections(header, outcomes),
        ],
        trials=trial_rows(outcomes),
        searched=answer.rows,
        left=answer.left,
    )


def _published_sections(
    header: RunHeader, outcomes: Sequence[Outcome], groups: Sequence[Group]
) -> list[Section]:
    """The published figures of the original of a suite, beside the measured ones."""
    # At the level of the rankings, so that a rate is one number in a report.
    summaries = [row.summary for group in groups for row in group.rows]
    setting = facts.sections(header, outcomes)
    if header.experiment.name == "emcache":
        own = [outcome for outcome in outcomes if not is_repeat(outcome.trial.cell)]
        return emcache.sections(own) + setting
    return published.sections(header.experiment.name, outcomes, summaries) + setting


def _absences(summaries: list[CellSummary]) -> list[Absence]:
    skipped = [
        Skipped(cell=summary.cell, reason=summary.unsupported, remedy=summary.remedy)
        for summary in summaries
        if summary.unsupported
    ]
    return find_absences(skipped, [summary.cell for summary in summaries])


def _rejected(outcomes: Sequence[Outcome]) -> list[str]:
    """The trials that do not count: a line for each reason, for all figures, ports and cells."""
    cells = trials_of_cells(outcomes)
    alike: dict[str, list[tuple[Outcome, str]]] = {}
    for trial in (trial for trials in cells.values() for trial in trials):
        for reason in rejections(trial):
            key = _FIGURE.sub("…", reason_without_ports(reason))
            alike.setdefault(key, []).append((trial, reason))
    return [_rejected_line(members, cells) for members in alike.values()]


def _rejected_line(
    members: list[tuple[Outcome, str]], trials_by_cell: Mapping[Cell, list[Outcome]]
) -> str:
    reasons = list(dict.fromkeys(reason for _, reason in members))
    without_ports = list(dict.fromkeys(map(reason_without_ports, reasons)))
    reason = reasons[0] if len(reasons) == 1 else without_ports[0]
    similar = " (and similar)" if len(without_ports) > 1 else ""
    cells = list(dict.fromkeys(trial.trial.cell for trial, _ in members))
    # A trial can have several reasons that differ in their figures only.
    count = len({id(trial) for trial, _ in members})
    total = sum(len(trials_by_cell[cell]) for cell in cells)
    where = cell_title(cells[0]) if len(cells) == 1 else count_of(len(cells), "cell")
    remedy = next((f" → {trial.remedy}" for trial, _ in members if trial.remedy), "")
    return f"{where}: {count} of {total} trials {reason}{similar}{remedy}"


def _notes(experiment: Experiment, summaries: list[CellSummary]) -> list[str]:
    notes: list[str] = []
    if any(load.schedule == "closed" for load in experiment.loads):
        notes.append(
            "Closed loop: a slow reply delays the next request, and response times do not "
            "include this delay. So they are not the response times under a given load."
        )
    if experiment.blocks < 5 and not uses_rounds(experiment):
        few = "1 block is" if experiment.blocks == 1 else f"{experiment.blocks} blocks are"
        notes.append(f"{few} few: use 5 or more (--blocks) for figures that you publish.")
    if experiment.blocks < MIN_INTERVAL_TRIALS:
        notes.append(
            "−/+ is the range of the trials. ± is a 95 % interval: from "
            f"{MIN_INTERVAL_TRIALS} trials on, and of percentiles for which single trials have too "
            "few operations."
        )
    notes += too_few(kind for summary in summaries for kind in (summary.total, *summary.parts))
    return [*notes, *_trial_notes(summaries)]


def _trial_notes(summaries: list[CellSummary]) -> list[str]:
    """What trials were noted for: a line for each kind, for all figures and clients."""
    alike: dict[str, list[tuple[str, str]]] = {}
    for summary in summaries:
        for note in summary.notes:
            alike.setdefault(_FIGURE.sub("…", note), []).append((summary.cell.client, note))
    lines: list[str] = []
    for members in alike.values():
        clients, texts = (list(dict.fromkeys(of)) for of in zip(*members, strict=True))
        similar = " (and similar)" if len(texts) > 1 else ""
        lines.append(f"{', '.join(clients)}: {texts[0]}{similar}")
    return lines


def _trace_notes(outcomes: Sequence[Outcome]) -> list[str]:
    """How tapes differ from their traces, and what their gets do."""
    notes: list[str] = []
    for outcome in outcomes:
        name, load = outcome.workload.name, outcome.load
        if outcome.tape is None or outcome.workload.trace is None:
            continue
        if outcome.workload.trace_gets == "cache-aside":
            notes.append(f"{name}: cache-aside: gets that miss store their keys, not as logged.")
        differences = trace_differences(outcome.tape, replayed=load.schedule.startswith("replay"))
        notes += [f"{name}: {line}." for line in differences]
    return list(dict.fromkeys(notes))


def _rates_without_timeline(outcomes: Sequence[Outcome]) -> list[str]:
    """A sentence if some rates end with the last reply, which one slow reply can lower."""
    clients = dict.fromkeys(
        outcome.trial.cell.client
        for outcome in sorted(outcomes, key=lambda outcome: outcome.trial.index)
        if outcome.verdict == "VALID" and outcome.rounds is None
        if ends_by_time(outcome) and outcome.measure and outcome.measure.timeline is None
    )
    if not clients:
        return []
    return [f"Without a timeline, the rate ends with the last reply: {', '.join(clients)}."]


def _unplayed(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[str]:
    """A sentence if a run was broken off: cells may have fewer trials than others, or none."""
    if uses_rounds(experiment):
        return _unplayed_sittings(experiment, outcomes)
    unsupported = {outcome.trial.cell for outcome in outcomes if outcome.state == "unsupported"}
    left_out = unsupported | given_up(outcomes)
    planned = trial_count(experiment) - len(left_out) * experiment.blocks
    counted = [outcome for outcome in outcomes if outcome.trial.cell not in left_out]
    # A replay does not count as another trial.
    played = len({(outcome.trial.block, outcome.trial.cell) for outcome in counted})
    if played >= planned:
        return []
    return [f"{played} of {planned} trials were played: `cachemark run --resume` plays the rest."]


def _unplayed_sittings(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[str]:
    """How many sittings a run has, where it ended before the last one: settled, or broken off."""
    played = len({outcome.trial.block for outcome in outcomes if outcome.rounds})
    if played >= experiment.blocks or not played:
        return []
    return [f"{played} of at most {experiment.blocks} sittings were played."]


def _design(experiment: Experiment, turns: str) -> str:
    if uses_rounds(experiment):
        return f"in turns of {turns}"
    return f"{count_of(experiment.blocks, 'block')} in random order"


def _environment(header: RunHeader, turns: str) -> list[str]:
    host, experiment = header.host, header.experiment
    virtual = "virtual machine" if host.hypervisor else "no hypervisor"
    placement = experiment.placement
    return [
        f"{host.cpu_model or 'unknown CPU'}, {len(host.usable_cpus)} CPUs, {virtual}, "
        f"{host.memory_bytes / 2**30:.0f} GiB, {host.system}, Linux {host.kernel}",
        f"governor {host.governor or 'not readable'}, clock {host.clocksource}, "
        f"load {host.load_1min:.2f} at the start",
        f"hosts: {hosts.placement_text(header.hosts)}; the results are kept on {host.name}"
        if header.hosts
        else f"client and server on one machine unless remote; CPUs: server {placement.server}, "
        f"worker {placement.worker}" + ("; idle CPUs kept awake" if experiment.awake else ""),
        f"cachemark {header.cachemark}, Python {host.python}, {_design(experiment, turns)}, "
        f"seed {experiment.seed}, {header.created_at}",
    ]
