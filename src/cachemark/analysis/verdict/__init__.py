"""Is a trial valid? Pure rules over the counts of client, server and machine.

INVALID: the figures cannot be trusted, so they are withheld. OVERLOAD: in an open loop, the server
or the client could not keep up, so response times grow with the window. NON_STATIONARY: the rate or
the response time changed during the window, so one figure would not describe it.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachemark.analysis.verdict.conservation import (
    commands,
    commands_per_server,
    counts,
    idle_servers,
)
from cachemark.analysis.verdict.noise import noise_findings
from cachemark.analysis.verdict.open_loop import open_loop
from cachemark.analysis.verdict.stationarity import steadiness, unsteady
from cachemark.analysis.verdict.value import Judgement, concluded, invalid
from cachemark.model.experiment import Load, NoisePolicy, Workload
from cachemark.model.outcome import CommandCount, HostNoise
from cachemark.model.protocol import Done
from cachemark.model.server_stats import ServerStats

__all__ = [
    "Judgement",
    "commands_per_server",
    "concluded",
    "invalid",
    "judge",
    "steadiness",
    "unsteady",
]


def judge(
    measure: Done,
    *,
    workload: Workload,
    load: Load,
    before: ServerStats,
    after: ServerStats,
    shared_server: bool = False,
    merges: bool = False,
    server_commands: Sequence[int] = (),
    command_counts: Sequence[CommandCount] = (),
    noise: HostNoise | None = None,
    policy: NoisePolicy = "auto",
) -> Judgement:
    """Judge the measured window of one trial.

    `before` and `after`: the server's `stats` before and after the window. `command_counts`:
    readings of its commands within. `shared_server`: other clients may use the server, so larger
    counts are only noted. `merges`: the client may answer reads without a command for each, so
    fewer reads are only noted. `server_commands`: the commands of each of several servers in the
    window. `policy`: what noise does to a trial.
    """
    found = counts(measure, workload, before, after, shared_server=shared_server, merges=merges)
    found += idle_servers(workload, server_commands)
    if load.schedule != "closed":
        found += open_loop(measure, load)
    found += noise_findings(noise, measure, load, policy)
    begun, ended = commands(before), commands(after)
    done = None if begun is None or ended is None else ended - begun
    steady = steadiness(measure, workload, load, command_counts, done)
    return concluded([*found, *unsteady(steady)], steady)
