"""Is this trial valid? Pure rules over what client, server and machine counted.

INVALID: the figures cannot be trusted, so none is shown. OVERLOAD: an open loop whose server or
client could not keep up; its response times grow with the window and have no steady state.
NON_STATIONARY: the window was not level, so that one figure for all of it would be of nothing.
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
from cachemark.model.outcome import HostNoise, Tick
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
    ticks: Sequence[Tick] = (),
    noise: HostNoise | None = None,
    policy: NoisePolicy = "auto",
) -> Judgement:
    """Judge the measured window of one trial.

    `before` and `after` are the server's `stats` round the window, `ticks` readings of its commands
    within; `shared_server`: others may use it too, so counts beyond ours are noted, not held
    against the trial; `merges`: the client says that it may answer reads without a command for
    each, so fewer of them are noted likewise; `server_commands`: what each of several servers did
    in the window; `policy` says what noise does to a trial.
    """
    found = counts(measure, workload, before, after, shared_server=shared_server, merges=merges)
    found += idle_servers(workload, server_commands)
    if load.schedule != "closed":
        found += open_loop(measure, load)
    found += noise_findings(noise, measure, load, policy)
    begun, ended = commands(before), commands(after)
    done = None if begun is None or ended is None else ended - begun
    steady = steadiness(measure, workload, load, ticks, done)
    return concluded([*found, *unsteady(steady)], steady)
