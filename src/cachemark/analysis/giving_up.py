"""Trials that failed: which may be replayed, and which cells are not tried again. Pure."""

import re
from collections import Counter
from collections.abc import Sequence

from cachemark.analysis.verdict.noise import OUTSIDE_RULES
from cachemark.model.outcome import Cell, Outcome

# A cell that fails this often for one reason fails always: more trials would only take time.
FAILURES_TO_GIVE_UP = 2
_RANDOM = re.compile(r"(?<=:)\d{2,5}\b|\b(?:pid|process) \d+|/tmp/\S+")


def reason_without_ports(reason: str) -> str:
    """A reason without its ports, processes and temporary files, which differ from trial to trial.

    >>> reason_without_ports("server 127.0.0.1:43121: answered `stats` with b'ERROR'")
    "server 127.0.0.1:…: answered `stats` with b'ERROR'"
    """
    return _RANDOM.sub("…", reason)


def given_up(outcomes: Sequence[Outcome]) -> frozenset[Cell]:
    """The cells that failed repeatedly for one reason, and were never measured."""
    measured = {outcome.trial.cell for outcome in outcomes if outcome.state == "measured"}
    failures = Counter(
        (outcome.trial.cell, reason_without_ports(outcome.reason))
        for outcome in outcomes
        if outcome.state == "failed"
    )
    return frozenset(
        cell
        for (cell, _), count in failures.items()
        if count >= FAILURES_TO_GIVE_UP and cell not in measured
    )


# Rules about the clocks of several hosts.
_CLOCK_RULES = frozenset({"clock-jump", "start-skew", "void-slices"})
_PAUSES = frozenset({"long-pause"})


def may_be_replayed(outcome: Outcome) -> bool:
    """Whether a trial that does not count was spoiled by the machine alone.

    A replay because of a trial's figures would select figures, so no rate and no time decides here.
    A trial may be replayed if something from outside disturbed the machine beyond its limit, or if
    it failed before its worker was ready, so that nothing had been played.
    """
    if outcome.state == "failed":
        return outcome.worker is None
    # These percentiles were withheld because of how long operations took.
    by_times = {each.rule for each in outcome.withheld}
    return any(
        finding.weight == "INVALID"
        and finding.rule in (OUTSIDE_RULES | _CLOCK_RULES | _PAUSES) - by_times
        for finding in outcome.findings
    )
