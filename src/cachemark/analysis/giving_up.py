"""Failures that repeat: which of them are the same, and which cells are not tried again. Pure."""

import re
from collections import Counter
from collections.abc import Sequence

from cachemark.model.outcome import Cell, Outcome

# The same reason so often in a cell is no accident, and more trials would only take time.
FAILURES_TO_GIVE_UP = 2
_RANDOM = re.compile(r"(?<=:)\d{2,5}\b|\b(?:pid|process) \d+|/tmp/\S+")


def reason_without_ports(reason: str) -> str:
    """A reason without what differs from trial to trial: ports, processes, temporary files.

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
