"""Which trials may be replayed: those that the machine spoiled, whatever they measured. Pure.

To replay a trial because of its figures would select figures. So no rate and no time decides here.
A trial may be replayed if something from outside disturbed the machine beyond its limit, or if the
trial failed before its worker was ready, so that nothing had been played.
"""

from cachemark.analysis.verdict.noise import OUTSIDE_RULES
from cachemark.model.outcome import Outcome

# Of trials over several hosts: their clocks.
_CLOCK_RULES = frozenset({"clock-jump", "start-skew", "void-slices"})
_PAUSES = frozenset({"long-pause"})


def may_be_replayed(outcome: Outcome) -> bool:
    """Whether a trial that does not count was spoiled by the machine alone."""
    if outcome.state == "failed":
        return outcome.worker is None
    # These percentiles were withheld because of how long operations took.
    by_times = {each.rule for each in outcome.withheld}
    return any(
        finding.weight == "INVALID"
        and finding.rule in (OUTSIDE_RULES | _CLOCK_RULES | _PAUSES) - by_times
        for finding in outcome.findings
    )
