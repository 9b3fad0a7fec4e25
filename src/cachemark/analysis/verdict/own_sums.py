"""A worker's own figures, checked against each other.

From outside, a window is seen in parts only. A worker whose calls lasted longer than its window,
whose slices have other counts than their sum, or whose response times are shorter than its calls,
tells a wrong rate or wrong percentiles.
"""

from collections.abc import Iterator

from cachemark.analysis.verdict.trial_verdict import invalid_finding, limit_finding
from cachemark.model import histogram
from cachemark.model.experiment_limits import outstanding_ops
from cachemark.model.outcome import Finding, Outcome
from cachemark.model.protocol import Done
from cachemark.model.protocol_results import attempts_of
from cachemark.model.rounds import Rounds
from cachemark.model.units import plain

# How much longer calls may last in all than the window, and by how much the sum of a histogram may
# be below them.
_ROOM_PART, _BUCKET_PART = 0.05, 0.01
# Outstanding operations that began before a slice was counted last up to this many mean times.
_EARLY_OPERATIONS = 2


def own_sum_findings(outcome: Outcome) -> list[Finding]:
    """INVALID where a worker's own figures contradict each other."""
    done, rounds = outcome.measure, outcome.rounds
    if done is None:
        return []
    in_turn = outcome.load.schedule == "closed" and outcome.load.depth == 1
    findings = [
        *_of_histograms(done, in_turn=in_turn),
        *(_sums_of_slices(done, rounds) if rounds else ()),
    ]
    if outcome.load.schedule == "closed" and outcome.generators is None:
        findings += _of_calls(outcome, done, rounds)
    return findings


def _sums_of_slices(done: Done, rounds: Rounds) -> Iterator[Finding]:
    """Lead-ins of void slices and of the warm-up are in no slice that counts."""
    slices = rounds.slices
    counted = sum(slices.ops) + sum(slices.errors) + rounds.void_ops
    others, all_others = sum(slices.lead_in_ops), attempts_of(done.lead_in or {})
    told = attempts_of(done.operations)
    if counted != told or others > all_others:
        text = f"slices of {counted:,} counted operations and {others:,} others, "
        text += f"and the worker's sums of them are {told:,} and {all_others:,}"
        yield invalid_finding("own-counts", text)


def _of_calls(outcome: Outcome, done: Done, rounds: Rounds | None) -> Iterator[Finding]:
    """Callers of a closed loop are in calls for as long as the window lasts, at most."""
    load, own_ns = outcome.load, done.elapsed_ns
    hosts = sum(part.measure is not None for part in outcome.hosts)
    callers = max(1, hosts) * outstanding_ops(load)
    call_ns = sum(each.busy_ns for each in done.operations.values()) / callers
    least_ns = call_ns / (1 + _ROOM_PART)
    if rounds is not None:
        # Void slices are in the worker's sum only.
        own_ns = own_ns if rounds.void_slices else min(own_ns, sum(rounds.slices.elapsed_ns))
        # A caller with one outstanding operation counts from its own first completion on.
        early = _EARLY_OPERATIONS * len(rounds.slices.ops) if load.depth > 1 else 0
        least_ns -= early * call_ns * callers / max(1, attempts_of(done.operations))
    if own_ns < least_ns:
        text = f"the worker reports a window of {plain(own_ns / 1e9)} s, "
        text += f"and {plain(call_ns / 1e9)} s in calls for each of its callers"
        yield limit_finding("own-clock", text, own_ns / 1e6, least_ns / 1e6, "ms")


def _of_histograms(done: Done, *, in_turn: bool) -> Iterator[Finding]:
    """A response time is as long as its call, or longer. A failed operation may have one, too.

    `in_turn`: a caller has one operation at a time, so its service time is its call.
    """
    for kind, each in done.operations.items():
        least_ns = (1 - _BUCKET_PART) * each.busy_ns - each.ok
        most_ns = (1 + _BUCKET_PART) * each.busy_ns + each.ok
        for name, blob in (("response", each.response), ("service", each.service)):
            times = histogram.decode(blob) if blob else None
            if times is None or each.ok < each.attempts or done.overflow:
                continue
            told_ns = times.mean() * times.count if times.count else 0.0
            longer = in_turn and name == "service" and told_ns > most_ns
            if told_ns < least_ns or longer or times.count != each.ok:
                text = f"{kind}: {times.count:,} {name} times of {plain(told_ns / 1e9)} s in all, "
                text += f"and {each.ok:,} calls of {plain(each.busy_ns / 1e9)} s"
                yield limit_finding("own-times", text, told_ns / 1e6, least_ns / 1e6, "ms")
