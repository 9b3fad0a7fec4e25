"""Whether the machine, and not the client, can be why a cell broke a rule. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from cachemark.analysis.resilience.figures import Figures
from cachemark.analysis.resilience.verdict import FaultFinding, verdict_of

# The rules about times leave half a second between a time-out and a broken rule.
LONGEST_PAUSE_MS = 200.0
# A half of the four callers.
WAITING_THREADS = 2.0
# Rules that a client can break because it got no CPU. A wrong value is one however busy the machine
# is, and connections, descriptors and threads are opened by the client.
_BROKEN_BY_WAITING = (
    "lost call", "longest call", "no recovery", "time-out", "slow recovery", "errors as misses",
    "needless failures",
)  # fmt: skip


def disturbance(figures: Figures, findings: Sequence[FaultFinding]) -> str:
    """The disturbance that can have caused the verdict of a cell, in words; empty without one.

    A client that is safe on a busy machine is safe.
    """
    sure = [one for one in findings if one.rule not in _BROKEN_BY_WAITING]
    if verdict_of(sure) == verdict_of(findings):
        return ""
    if figures.longest_pause_ms > LONGEST_PAUSE_MS:
        return f"the machine paused for {figures.longest_pause_ms:,.0f} ms"
    if figures.waiting_threads > WAITING_THREADS:
        return f"{figures.waiting_threads:.1f} threads of the cell waited for a CPU on average"
    return ""
