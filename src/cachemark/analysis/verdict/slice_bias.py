"""How much too high slices can make the rate of many callers, and the length that avoids it. Pure.

Each caller counts from its first completion to its last one. If callers share a CPU in random
order, the counted part begins while all of them are active and ends while the last of them have the
CPU for themselves. That is half an operation's time too much, and a whole one or little more if
the CPU is shared evenly by operations of very unlike lengths. In the order of their arrival, or
with waits that do not depend on each other, there is no such bias: which of it is true of a client
is not known, so the length of slices is that for the worst.
"""

import math

from cachemark.analysis.verdict.trial_verdict import limit_finding
from cachemark.model.experiment import Load, RoundsTiming
from cachemark.model.experiment_checks import MAX_CLOSED_SLICE_MS
from cachemark.model.experiment_limits import outstanding_ops
from cachemark.model.outcome import Finding, Outcome

# In simulations, up to 1.07 of an operation's time is too much.
_MOST_OPERATIONS = 1.25
# A counted part of this many operations has a bias of 1 % at most.
_LONG_ENOUGH = 100 * _MOST_OPERATIONS
_STEP_MS = 10


def callers_of(load: Load) -> int:
    """How many callers of a load can share a CPU in random order; 1: slices have no such bias."""
    return outstanding_ops(load) if load.schedule == "closed" else 1


def length_for_ms(operation_ns: float, counted_part: float) -> int:
    """The length of slices of which `counted_part` is counted, for operations of this time."""
    needed_ms = _LONG_ENOUGH * operation_ns / counted_part / 1e6
    return math.ceil(needed_ms / _STEP_MS) * _STEP_MS


def grown_ms(rounds: RoundsTiming, operation_ns: float) -> float:
    """The length of slices for the slowest arm with many callers: grown as far as it may be."""
    needed_ms = length_for_ms(operation_ns, 1 - rounds.lead_in_percent / 100)
    return max(rounds.slice_ms, min(needed_ms, MAX_CLOSED_SLICE_MS))


def most_bias_percent(operation_ns: float, counted_ns: float) -> float:
    """The most by which the rate may be too high, in percent."""
    return 100 * _MOST_OPERATIONS * operation_ns / counted_ns


def slice_bias_findings(outcome: Outcome) -> list[Finding]:
    """INVALID if even the longest slices may make the rate more than 1 % too high.

    The time of an operation is that of the warm-up before the arm's first counted slice: it
    decided the length, and is the same for all sittings of a run. So no sitting's own rate chooses
    it.
    """
    rounds = outcome.rounds
    if rounds is None or not rounds.operation_ns:
        return []
    counted_ns = 1000 * (rounds.length_us - rounds.lead_in_us)
    if counted_ns > 0 and rounds.operation_ns * _LONG_ENOUGH <= counted_ns:
        return []
    bias = most_bias_percent(rounds.operation_ns, counted_ns) if counted_ns > 0 else math.inf
    text = f"{callers_of(outcome.load)} callers need {rounds.operation_ns / 1e6:.1f} ms for"
    text += f" an operation each: in slices of {rounds.length_us / 1e3:g} ms the rate may be up to"
    text += f" {bias:.1f} % too high; use --set design=trials"
    return [limit_finding("slice-bias", text, bias, 100 * _MOST_OPERATIONS / _LONG_ENOUGH, "%")]
