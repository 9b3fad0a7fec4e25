"""Every key is stored before the window: over keys that were not, it would measure misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from cachemark.model.errors import TrialError
from cachemark.model.protocol import Done

_TIMEOUT = "timeout"


def run_prefill(play: Callable[[], Done]) -> Done:
    """Play the prefill to its end; `play` does so once.

    Nothing is timed yet, so what a busy machine was too slow for is stored in a second round.
    Raises TrialError when keys are missing still.
    """
    done = play()
    if failures(done).keys() == {_TIMEOUT}:
        done = play()
    if found := failures(done):
        why = ", ".join(f"{count} × {kind}" for kind, count in found.items())
        raise TrialError(
            f"keys could not be stored before the window: {why}",
            "a longer --timeout-ms, or fewer callers"
            if found.keys() == {_TIMEOUT}
            else "smaller values, or a server with a larger item limit",
        )
    return done


def failures(prefill: Done) -> dict[str, int]:
    """How many keys were not stored, by the kind of error."""
    counts: Counter[str] = Counter()
    for operation in prefill.operations.values():
        counts.update(operation.errors)
        counts["not stored"] += operation.attempts - operation.ok - sum(operation.errors.values())
    return {kind: count for kind, count in counts.items() if count}
