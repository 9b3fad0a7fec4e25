"""The prefill: every key is stored before the window. Otherwise, gets would measure misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from cachemark.model.errors import TrialError
from cachemark.model.protocol import Done

_TIMEOUT = "timeout"
# What helps against each kind of error. Any other is the server's own answer.
_REMEDIES = {
    _TIMEOUT: "a longer timing.timeout_ms, or fewer callers",
    "connection": "fewer connections: the server closed or refused some of them",
}
_LARGE_VALUES = "smaller values, or a server with a larger item limit"


def run_prefill(play: Callable[[], Done]) -> Done:
    """Play the prefill until all keys are stored; `play` plays it once.

    Nothing is timed yet, so after time-outs on a busy machine the prefill is played once more.
    Raises TrialError if keys are still missing.
    """
    done = play()
    if failures(done).keys() == {_TIMEOUT}:
        done = play()
    if found := failures(done):
        why = ", ".join(f"{count} × {kind}" for kind, count in found.items())
        raise TrialError(
            f"keys could not be stored before the window: {why}",
            "; ".join(dict.fromkeys(_REMEDIES.get(kind, _LARGE_VALUES) for kind in found)),
        )
    return done


def failures(prefill: Done) -> dict[str, int]:
    """The number of keys that were not stored, by kind of error."""
    counts: Counter[str] = Counter()
    for operation in prefill.operations.values():
        counts.update(operation.errors)
        counts["not stored"] += operation.attempts - operation.ok - sum(operation.errors.values())
    return {kind: count for kind, count in counts.items() if count}
