"""How long the slices of a run were, and by how much they can tell too high a rate."""

from collections.abc import Sequence

from cachemark.analysis.verdict.slice_bias import callers_of, length_for_ms, most_bias_percent
from cachemark.model.experiment_checks import MAX_CLOSED_SLICE_MS
from cachemark.model.outcome import Cell, Outcome

_LIMIT_PERCENT = 1.0
# Where the warm-up decided the length, the counted slices may be as much slower than it.
_LIMIT_OF_GROWN_PERCENT = 2.0


def turns_text(outcomes: Sequence[Outcome], slice_ms: float) -> str:
    """How long turns were, such as `30 ms`, or `30 to 240 ms (as many callers need)`."""
    lengths_ms = sorted({of.rounds.length_us / 1e3 for of in outcomes if of.rounds})
    if not lengths_ms:
        return f"{slice_ms:g} ms"
    shortest, longest = lengths_ms[0], lengths_ms[-1]
    text = f"{longest:g} ms" if shortest == longest else f"{shortest:g} to {longest:g} ms"
    return f"{text} (as many callers need)" if longest > slice_ms else text


def bias_texts(outcomes: Sequence[Outcome]) -> list[str]:
    """A sentence for each cell whose counted slices were too short for its operations.

    Runs of earlier versions have slices that did not grow; in others, the operations of the counted
    slices may last longer than those of the warm-up, which decided the length.
    """
    cells: dict[Cell, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.rounds and outcome.measure and outcome.verdict == "VALID":
            cells.setdefault(outcome.trial.cell, []).append(outcome)
    return [text for cell, of in cells.items() if (text := _text(cell, of))]


def _text(cell: Cell, outcomes: Sequence[Outcome]) -> str:
    slices = [of.rounds.slices for of in outcomes if of.rounds]
    callers, rounds = callers_of(outcomes[0].load), outcomes[0].rounds
    ops = sum(sum(of.ops) + sum(of.errors) for of in slices)
    if rounds is None or callers == 1 or ops == 0 or rounds.length_us <= rounds.lead_in_us:
        return ""
    operation_ns = callers * sum(sum(of.elapsed_ns) for of in slices) / ops
    counted_part = 1 - rounds.lead_in_us / rounds.length_us
    bias = most_bias_percent(operation_ns, 1000 * rounds.length_us * counted_part)
    if bias <= (_LIMIT_OF_GROWN_PERCENT if rounds.operation_ns else _LIMIT_PERCENT):
        return ""
    needed_ms = length_for_ms(operation_ns, counted_part)
    remedy = (
        f"Slices of {needed_ms} ms (--set rounds.slice_ms={needed_ms}) keep that below 1 %."
        if needed_ms <= MAX_CLOSED_SLICE_MS
        else "Trials (--set design=trials) have no such bias."
    )
    return (
        f"{cell.client} on {cell.server} ({cell.load}) has {callers} callers. If they share a CPU"
        f" in random order, slices of {rounds.length_us / 1e3:g} ms tell up to {bias:.1f} % too"
        f" high a rate. {remedy}"
    )
