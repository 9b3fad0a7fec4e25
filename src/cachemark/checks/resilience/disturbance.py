"""Whether the machine, and not the client, can be why a cell broke a rule. Pure."""

from __future__ import annotations

from cachemark.checks.resilience.figures import Figures
from cachemark.checks.resilience.verdict import Verdict

# The rules about times leave half a second between a time-out and a broken rule.
LONGEST_PAUSE_MS = 200.0
# A half of the four callers.
WAITING_THREADS = 2.0


def disturbance(figures: Figures, verdict: Verdict | None) -> str:
    """What disturbed a cell so that its verdict can come from it; empty if nothing did.

    A wrong value is one however busy the machine is, and a client that is safe on a busy machine
    is safe.
    """
    if verdict not in ("hangs", "degraded"):
        return ""
    if figures.longest_pause_ms > LONGEST_PAUSE_MS:
        return f"the machine paused for {figures.longest_pause_ms:,.0f} ms"
    if figures.waiting_threads > WAITING_THREADS:
        return f"{figures.waiting_threads:.1f} threads of the cell waited for a CPU on average"
    return ""
