"""Whether hits come from the workload, or only from playing its tape again. Pure.

Whether a read finds its key may depend on the operations before it: a `fetch` stores what it does
not find. A tape that is played again finds what it stored before, where new operations would not.
"""

from cachemark.analysis.verdict.trial_verdict import limit_finding
from cachemark.analysis.verdict.withholding import Judged
from cachemark.model.outcome import Finding, Outcome
from cachemark.model.protocol import Done
from cachemark.model.protocol_results import attempts_of
from cachemark.model.server_stats import ServerStats

TAPE_REPEATED = "tape-repeated"
# A longer tape is advised with some room.
_ROOM = 1.25


def hits_withheld(outcome: Outcome) -> bool:
    """Whether hits and misses of a trial are not shown."""
    return any(found.rule == TAPE_REPEATED for found in outcome.findings)


def repeated_tape(outcome: Outcome) -> Judged:
    """A finding if hits and misses of a trial are to be withheld. It must have been measured."""
    tape, measure = outcome.tape, outcome.measure
    if tape is None or tape.reuse is None or measure is None:
        return Judged()
    before, played = _played(outcome, measure)
    misses = sum(operation.misses for operation in measure.operations.values())
    if misses == 0 and not tape.reuse.fills:
        return Judged()
    depends = tape.reuse.lost if _may_lose(outcome) else tape.reuse.kept
    whole_warm_up = before == 0 or before >= tape.ops
    if depends == "never" or (depends == "covered" and whole_warm_up):
        return Judged()
    if outcome.workload.passes is not None and before == 0:
        return Judged()
    if before == 0 and played <= tape.ops:
        return Judged()
    warm_up_alone = depends == "covered" or played <= tape.ops
    return Judged(findings=[_finding(before, played, tape.ops, before > 0 and warm_up_alone)])


def _played(outcome: Outcome, measure: Done) -> tuple[int, int]:
    """How many operations of the tape were played before it began again for the window, and since.

    In rounds the tape goes on from slice to slice, so the warm-up is a part of what was played.
    """
    counted = attempts_of(measure.operations)
    rounds = outcome.rounds
    if rounds is None:
        return (attempts_of(outcome.warmup.operations) if outcome.warmup else 0), counted
    slices = len(rounds.slices.ops)
    whole = counted + sum(rounds.slices.lead_in_ops) + rounds.void_ops
    warm_up = whole * rounds.warmup_rounds / slices if slices else 0
    return 0, round(whole + warm_up)


def _may_lose(outcome: Outcome) -> bool:
    """Whether items may have been evicted or may have expired: also if the server does not say."""
    evictions = ServerStats(outcome.stats_after).number("evictions")
    return evictions != 0 or outcome.workload.exptime_s not in (0, "0")


def _finding(before: int, played: int, ops: int, warm_up_alone: bool) -> Finding:
    """The same words for all trials of a cell, whatever each of them played.

    `warm_up_alone`: without a warm-up, the hits would be shown.
    """
    if warm_up_alone:
        why = "the warm-up played the first operations of the tape, and the window began with them"
        remedy = "timing.warmup_ms = 0 begins with the server as it was stored"
    else:
        why = f"a tape of {ops:,} operations was played more than once"
        remedy = f"workloads.records = {_advised(before + played)} makes it long enough"
        remedy += ", with timing.warmup_ms = 0" if before else ""
    text = f"{why}, which finds what it stored before; {remedy}"
    passes = round((before + played) / ops, 2)
    return limit_finding(TAPE_REPEATED, text, passes, 1, "passes", weight="withheld")


def _advised(played: int) -> int:
    """A tape with some room, as a number with one digit that is not zero."""
    wanted = round(played * _ROOM)
    step = 10 ** (len(str(wanted)) - 1)
    return -(-wanted // step) * step
