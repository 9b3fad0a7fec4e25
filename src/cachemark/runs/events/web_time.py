"""The CPU time of the server that shows a run in a browser, as a part of the run's outcomes."""

import os
from collections.abc import Callable

import msgspec

from cachemark.host.process import cpu_ns
from cachemark.model.outcome import Outcome

# The environment variable with the process id of the server that belongs to a run.
WEB_PID = "CACHEMARK_WEB_PID"


def with_web_time(play: Callable[[], list[Outcome]]) -> list[Outcome]:
    """Play, and note in each outcome what the server used meanwhile, if there is one."""
    pid = os.environ.get(WEB_PID, "")
    if not pid.isdecimal():
        return play()
    before = cpu_ns(int(pid))
    outcomes = play()
    after = cpu_ns(int(pid))
    if before is None or after is None:
        return outcomes
    return [msgspec.structs.replace(outcome, web_cpu_ns=after - before) for outcome in outcomes]
