"""Is a trial valid? Pure rules over the counts of client, server and machine.

INVALID: the figures cannot be trusted, so they are withheld. OVERLOAD: in an open loop, the server
or the client could not keep up, so response times grow with the window. NON_STATIONARY: the
response time of an open loop rose throughout the window, so its percentiles depend on the length of
the window.

A trial that is VALID may still withhold single percentiles (withholding.py).
"""

from collections.abc import Sequence

from cachemark.analysis.verdict.conservation import (
    commands_per_server,
    conservation_findings,
    executed_commands,
    idle_servers,
)
from cachemark.analysis.verdict.long_pauses import long_pause_findings
from cachemark.analysis.verdict.noise import noise_delays, noise_findings
from cachemark.analysis.verdict.open_loop import (
    generated_findings,
    generator_delay,
    open_loop_findings,
    with_generated,
)
from cachemark.analysis.verdict.own_sums import own_sum_findings
from cachemark.analysis.verdict.own_times import own_time_findings
from cachemark.analysis.verdict.stationarity import check_stationarity, stationarity_findings
from cachemark.analysis.verdict.tape_repeats import TAPE_REPEATED, hits_withheld, repeated_tape
from cachemark.analysis.verdict.transferred_bytes import byte_findings
from cachemark.analysis.verdict.trial_verdict import (
    TrialVerdict,
    conclude,
    invalid_finding,
    with_more,
)
from cachemark.analysis.verdict.withholding import Judged, withhold
from cachemark.model.experiment import Load, NoisePolicy, Workload
from cachemark.model.outcome import CommandCount, HostNoise
from cachemark.model.protocol import Done
from cachemark.model.server_stats import ServerStats


def judge(
    measure: Done,
    *,
    workload: Workload,
    load: Load,
    before: ServerStats,
    after: ServerStats,
    shared_server: bool = False,
    merges: bool = False,
    raw_bytes: bool = False,
    partial_counters: bool = False,
    server_commands: Sequence[int] = (),
    command_counts: Sequence[CommandCount] = (),
    generated: Done | None = None,
    generated_load: Load | None = None,
    noise: HostNoise | None = None,
    policy: NoisePolicy = "auto",
) -> TrialVerdict:
    """Judge the measured window of one trial.

    `before` and `after`: the server's `stats` before and after the window. `command_counts`:
    readings of its commands within. `shared_server`: other clients may use the server, so larger
    counts are only noted. `merges`: the client may answer reads without a command for each, so
    fewer reads are only noted. `raw_bytes`: the client sends the tape's keys and values as they
    are, so the server's counts of bytes can be compared. `partial_counters`: `before` and `after`
    lack some counters of the server, so they do not tell its commands. `server_commands`: the
    commands of each of several servers in the window. `generated`: what load generators did beside
    a measuring client, whose load was `generated_load`. `policy`: what noise does to a trial.
    """
    played = with_generated(measure, generated)
    trial_findings = conservation_findings(
        played, workload, load, before, after, shared_server=shared_server, merges=merges
    )
    if raw_bytes:
        trial_findings += byte_findings(
            played, load, before, after, shared_server=shared_server, merges=merges
        )
    trial_findings += generated_findings(generated, generated_load)
    trial_findings += idle_servers(workload, server_commands)
    trial_findings += noise_findings(noise, measure, load, policy)
    trial_findings += long_pause_findings(noise, measure, load, policy)
    judged = Judged()
    if load.schedule != "closed":
        trial_findings += open_loop_findings(measure, load)
        judged = withhold(
            measure, [*generator_delay(measure), *noise_delays(noise, measure, load, policy)]
        )
    begun, ended = executed_commands(before), executed_commands(after)
    done = None if partial_counters or begun is None or ended is None else ended - begun
    steady = check_stationarity(measure, workload, load, command_counts, done)
    findings = [*trial_findings, *judged.findings, *stationarity_findings(steady)]
    return conclude(findings, steady, judged)
