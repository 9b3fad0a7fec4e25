"""The verdict on a trial that was played to its end, from its outcome and its setting. Pure."""

from collections.abc import Mapping, Sequence

import msgspec

from cachemark.analysis.statistics import window_rate
from cachemark.analysis.verdict import (
    Judged,
    invalid_finding,
    judge,
    own_sum_findings,
    own_time_findings,
    repeated_tape,
    with_more,
)
from cachemark.analysis.verdict.hosts import clock_findings, differing_hosts, skew_finding
from cachemark.analysis.verdict.slice_bias import slice_bias_findings
from cachemark.analysis.verdict.void_slices import judge_void
from cachemark.model.experiment_limits import outstanding_ops
from cachemark.model.outcome import CommandCount, Finding, HostPart, Outcome
from cachemark.model.protocol import Done
from cachemark.model.server_stats import ServerStats
from cachemark.model.tape_header import Schedule
from cachemark.model.work_length import plays_to_an_end
from cachemark.runs.audit.claims import sends_as_on_tape
from cachemark.runs.audit.fitness import comparable_stats
from cachemark.runs.trials.setting import Setting
from cachemark.runs.trials.window import all_played


def judged(
    outcome: Outcome, setting: Setting, ticks: list[CommandCount], of_hosts: Sequence[Finding]
) -> Outcome:
    """The outcome with its verdict. `ticks`: readings of the server's counters in the window.

    `of_hosts`: what was found about several hosts.
    """
    assert outcome.measure is not None
    before, after = ServerStats(outcome.stats_before), ServerStats(outcome.stats_after)
    shared = setting.server.innermost.kind == "remote"
    stats = comparable_stats(setting.restrictions, before, after)
    verdict = judge(
        all_played(outcome.measure),
        workload=setting.workload,
        load=setting.load,
        before=stats.before,
        after=stats.after,
        shared_server=shared,
        partial_counters=stats.partial,
        server_commands=[each.commands for each in outcome.server_loads],
        merges=_merges(outcome, setting),
        raw_bytes=setting.generators is None and sends_as_on_tape(setting.client),
        command_counts=_with_due(ticks, setting, outcome.measure),
        generated=outcome.generated,
        generated_load=setting.cell_load,
        noise=outcome.noise,
        # In rounds the noise hits all arms alike, and their ratios take it out.
        policy=setting.noise if outcome.rounds is None else "note",
    )
    void = judge_void(outcome.measure, outcome.rounds) if outcome.rounds else Judged()
    own = [*own_time_findings(outcome, [] if shared else ticks), *own_sum_findings(outcome)]
    own += slice_bias_findings(outcome)
    if window_rate(outcome) == 0:
        text = "no operation succeeded before the end of the window"
        own.append(invalid_finding("nothing-done", text))
    if stats.reason:
        own.append(invalid_finding("distrust", stats.reason))
    for more in (void, Judged(findings=[*of_hosts, *own]), repeated_tape(outcome)):
        verdict = with_more(verdict, more)
    return msgspec.structs.replace(
        outcome,
        state="measured",
        verdict=verdict.verdict,
        reasons=verdict.reasons,
        notes=[*outcome.notes, *stats.notes, *verdict.notes],
        findings=verdict.findings,
        withheld=verdict.withheld,
        lag_bounds=verdict.lag_bounds,
        stationarity=verdict.stationarity,
    )


def _merges(outcome: Outcome, setting: Setting) -> bool:
    """Whether fewer reads than claimed may reach the server: one at a time cannot be merged."""
    if outcome.worker is None or "merges" not in outcome.worker.capabilities:
        return False
    several = outstanding_ops(setting.load) > 1 or setting.client.options.get("local_cache") == "on"
    return several or any(kind.startswith("mget") for kind in setting.workload.kinds)


def _with_due(ticks: list[CommandCount], setting: Setting, measure: Done) -> list[CommandCount]:
    """The readings, in an open loop with the operations that its tape had due by each.

    None where a timeline is judged, or no steady state, or generators count at the server too.
    """
    if measure.timeline or setting.generators or plays_to_an_end(setting.workload):
        return []
    if setting.load.schedule == "closed" or not ticks:
        return ticks
    schedule = Schedule(setting.tape.path)
    return [msgspec.structs.replace(one, due=schedule.due(one.at_ns)) for one in ticks]


def start_skew_ns(hosts: Sequence[HostPart]) -> int:
    """How far apart two hosts can have started, at most: errors of the clocks and lateness."""
    starts = sorted(
        part.clock_error_ns + part.late_ns for part in hosts if part.late_ns is not None
    )
    return sum(starts[-2:]) if len(starts) > 1 else 0


def host_findings(
    parts: Sequence[HostPart], skew_ns: int, trial_ns: int, later_errors_ns: Mapping[str, int]
) -> list[Finding]:
    """Findings about the hosts of a trial, which began `skew_ns` apart at most."""
    window_ns = max(part.measure.elapsed_ns for part in parts if part.measure)
    return [
        *clock_findings(parts, trial_ns, later_errors_ns),
        *skew_finding(skew_ns, window_ns),
        *differing_hosts([part for part in parts if "client" in part.roles]),
        *differing_hosts([part for part in parts if "load" in part.roles]),
    ]


def arm_findings(
    parts: Sequence[HostPart], trial_ns: int, later_errors_ns: Mapping[str, int]
) -> list[Finding]:
    """Findings about the hosts of an arm. Void slices show how far apart hosts began."""
    return [*clock_findings(parts, trial_ns, later_errors_ns), *differing_hosts(parts)]
