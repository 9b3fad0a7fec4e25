"""Outcomes → one row for each trial, in the order in which they were played; and replays."""

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from cachemark.analysis.number_format import count_of, rate_with_error, time_with_error
from cachemark.analysis.statistics import (
    PERCENTILES,
    CellSummary,
    KindSummary,
    WithinTrial,
    min_sample_size,
    min_section_size,
    window_rate,
)
from cachemark.analysis.verdict import hits_withheld
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Outcome, Sample
from cachemark.report.cells import cell_title
from cachemark.report.model import Section, TimelinePoint, TrialRow


def trial_rows(outcomes: Sequence[Outcome]) -> list[TrialRow]:
    """All trials, including those that could not run."""
    return [_row(outcome) for outcome in sorted(outcomes, key=lambda outcome: outcome.trial.index)]


def _row(outcome: Outcome) -> TrialRow:
    trial, noise = outcome.trial, outcome.noise
    return TrialRow(
        index=trial.index,
        block=trial.block,
        cell=trial.cell,
        verdict=outcome.verdict or outcome.state,
        reasons=[outcome.reason] if outcome.reason else outcome.reasons,
        ops_per_s=window_rate(outcome) if outcome.verdict == "VALID" else None,
        started_at=outcome.started_at,
        wall_ms=outcome.wall_ms,
        steal_percent=noise.steal_percent if noise else None,
        foreign_cpu_percent=noise.foreign_cpu_percent if noise else None,
        timeline=_timeline(outcome),
    )


def _timeline(outcome: Outcome) -> list[TimelinePoint]:
    """The figures of each whole second of the window; empty if the trial is not valid."""
    if outcome.verdict != "VALID" or not outcome.samples or not outcome.measure_started_at:
        return []
    start = datetime.datetime.fromisoformat(outcome.measure_started_at)
    start_unix_ns = round(start.timestamp() * 1e9)
    readings = _ops_readings(outcome.samples, start_unix_ns)
    # Placed by time, not by number: if a server answers late, a second has none.
    by_second = {round((of.unix_ns - start_unix_ns) / 1e9): of for of in outcome.samples}
    counts = {0: outcome.stats_before} | {at: one.stats for at, one in by_second.items()}
    last = max(int(readings[-1][0]), *by_second)
    hidden = hits_withheld(outcome)
    return [
        TimelinePoint(
            second=second,
            ops_per_s=_ops_in_second(readings, second),
            server_cpus=_server_cpus(by_second.get(second - 1), by_second.get(second)),
            server_rss_bytes=by_second[second].rss_bytes if second in by_second else None,
            hit_ratio=None if hidden else _hit_ratio(counts.get(second - 1), counts.get(second)),
        )
        for second in range(1, last + 1)
    ]


def _ops_readings(samples: Sequence[Sample], start_unix_ns: int) -> list[tuple[float, int]]:
    """The workers' reports as (second of the window, operations so far), beginning with (0, 0)."""
    readings = [(0.0, 0)]
    for sample in samples:
        if sample.ops is None or sample.ops_unix_ns is None:
            continue
        second = (sample.ops_unix_ns - start_unix_ns) / 1e9
        if second > readings[-1][0]:
            readings.append((second, sample.ops))
    return readings


def _ops_in_second(readings: Sequence[tuple[float, int]], second: int) -> float | None:
    """Operations in the second before `second`, interpolated between the workers' reports."""
    now, before = _ops_at(readings, second), _ops_at(readings, second - 1)
    return None if now is None or before is None else now - before


def _ops_at(readings: Sequence[tuple[float, int]], second: float) -> float | None:
    for (x, y), (x2, y2) in pairwise(readings):
        if x <= second <= x2:
            return y + (y2 - y) * (second - x) / (x2 - x)
    return None


def _server_cpus(old: Sample | None, new: Sample | None) -> float | None:
    if old is None or new is None or old.cpu_ns is None or new.cpu_ns is None:
        return None
    elapsed_ns = new.unix_ns - old.unix_ns
    return (new.cpu_ns - old.cpu_ns) / elapsed_ns if elapsed_ns > 0 else None


def _hit_ratio(old: Mapping[str, object] | None, new: Mapping[str, object] | None) -> float | None:
    """The share of the keys asked for between two readings that the server had."""
    hits, misses = (_rise(name, old or {}, new or {}) for name in ("get_hits", "get_misses"))
    if hits is None or misses is None or hits + misses <= 0:
        return None
    return hits / (hits + misses)


def _rise(name: str, old: Mapping[str, object], new: Mapping[str, object]) -> int | None:
    """How much a counter rose; None if a reading lacks it, or if it fell."""
    try:
        risen = int(str(new[name])) - int(str(old[name]))
    except (KeyError, ValueError):
        return None
    return risen if risen >= 0 else None


def replay_lines(experiment: Experiment, trials: Sequence[TrialRow]) -> list[str]:
    """The number of replays, and a line for each cell that still has too few valid trials."""
    wanted = experiment.until_valid
    if wanted is None:
        return []
    played = [row for row in trials if row.verdict != "unsupported"]
    tries = Counter(row.cell for row in played)
    valid = Counter(row.cell for row in played if row.verdict == "VALID")
    replays = len(played) - len({(row.block, row.cell) for row in played})
    lines = [
        f"Replayed: {replays} of {count_of(len(played), 'trial')}, since the machine was disturbed "
        "or they failed before they began; a measured rate or time is never a reason."
    ]
    return (lines if replays else []) + [
        f"{cell_title(cell)}: {count_of(count, 'trial')}, and {valid[cell]} of {wanted} are valid."
        for cell, count in tries.items()
        if valid[cell] < wanted
    ]


def within_sections(summaries: Sequence[CellSummary]) -> list[Section]:
    """One row for each such cell whose client records sections; empty if there are none."""
    single = [(s, s.within) for s in summaries if s.within is not None]
    shown = [(s, within) for s, within in single if not within.why]
    if not shown:
        return []
    without = [f"{s.cell.client}: {within.why}" for s, within in single if within.why]
    return [
        Section(
            title="Within one trial",
            topic="within",
            columns=["client", "server", "workload", "load", "ops/s",
                     *[f"p{percent:g}" for percent in PERCENTILES]],
            rows=[_within_row(summary, within) for summary, within in shown],
            notes=[
                "± is the interval within one trial, from its ten sections. It does not "
                "include the variation from trial to trial, so do not compare cells by it. "
                "Intervals over trials need two or more blocks (--blocks).",
                *_lacking(shown),
                *dict.fromkeys(without),
            ],
        )
    ]  # fmt: skip


def _within_row(summary: CellSummary, of: WithinTrial) -> list[str]:
    cell = summary.cell
    times = [of.percentiles_ns.get(percent) for percent in PERCENTILES]
    return [
        cell.client,
        cell.server,
        cell.workload,
        cell.load,
        "–" if of.ops_per_s is None else rate_with_error(of.ops_per_s),
        *["–" if time is None else time_with_error(time) for time in times],
    ]


def too_few(
    kinds: Iterable[KindSummary | None], percents: Iterable[float] = PERCENTILES
) -> list[str]:
    """Why some of these percentiles are a dash."""
    lacking = {each for of in kinds if of and of.response for each in of.response.too_few}
    return [
        f"–: p{each:g} needs at least {min_sample_size(each)} operations, and there were fewer."
        for each in percents
        if each in lacking
    ]


def _lacking(shown: Sequence[tuple[CellSummary, WithinTrial]]) -> list[str]:
    lacking = [
        percent
        for percent in PERCENTILES
        if any(of.percentiles_ns.get(percent) is None for _, of in shown)
    ]
    notes = [
        f"–: p{percent:g} needs at least {min_section_size(percent):,} operations in each "
        "section, and must be below the times of operations that timed out."
        for percent in lacking
    ]
    if any(of.ops_per_s is None for _, of in shown):
        notes.append(
            "–: the schedule sets the rate of an open loop, and a closed loop needs an operation "
            "in each section."
        )
    return notes
