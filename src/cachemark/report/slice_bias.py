"""By how much slices can tell too high a rate of many callers, and which length would do."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cachemark.model.experiment_checks import MAX_CLOSED_SLICE_MS
from cachemark.model.experiment_limits import outstanding_ops
from cachemark.model.outcome import Cell, Outcome

# Half an operation's time in a counted part that is so many times longer is 1 %.
_LONG_ENOUGH = 50
_STEP_MS = 10


def bias_texts(outcomes: Sequence[Outcome]) -> list[str]:
    """A sentence for each cell in slices whose rate may be told more than 1 % too high.

    Each caller counts from its first completion to its last one. If callers share a CPU in random
    order, the part begins while all of them are active and ends while the last of them have the
    CPU for themselves: that is half an operation's time too much. In the order of their arrival,
    or with waits that do not depend on each other, there is no such bias.
    """
    cells: dict[Cell, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.rounds and outcome.measure and outcome.load.schedule == "closed":
            cells.setdefault(outcome.trial.cell, []).append(outcome)
    return [text for cell, of in cells.items() if (text := _text(cell, of))]


def _text(cell: Cell, outcomes: Sequence[Outcome]) -> str:
    slices = [of.rounds.slices for of in outcomes if of.rounds]
    callers, rounds = outstanding_ops(outcomes[0].load), outcomes[0].rounds
    ops = sum(sum(of.ops) + sum(of.errors) for of in slices)
    if rounds is None or callers == 1 or ops == 0:
        return ""
    operation_ms = callers * sum(sum(of.elapsed_ns) for of in slices) / ops / 1e6
    length_ms, lead_in_ms = rounds.length_us / 1e3, rounds.lead_in_us / 1e3
    counted_ms = length_ms - lead_in_ms
    if counted_ms <= 0 or operation_ms * _LONG_ENOUGH <= counted_ms:
        return ""
    needed_ms = _LONG_ENOUGH * operation_ms * length_ms / counted_ms
    needed_ms = math.ceil(needed_ms / _STEP_MS) * _STEP_MS
    remedy = (
        f"Slices of {needed_ms} ms (--set rounds.slice_ms={needed_ms}) keep that below 1 %."
        if needed_ms <= MAX_CLOSED_SLICE_MS
        else "Trials (--set design=trials) have no such bias."
    )
    return (
        f"{cell.client} on {cell.server} ({cell.load}) has {callers} callers. If they share a CPU"
        f" in random order, slices of {length_ms:g} ms tell about"
        f" {100 * operation_ms / (2 * counted_ms):.1f} % too high a rate. {remedy}"
    )
