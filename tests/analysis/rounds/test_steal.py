"""CPU time that slices did not get: how often, and from which arm."""

import msgspec
import pytest

from cachemark.analysis.rounds.pairs import read_sittings
from cachemark.analysis.rounds.steal import steal
from cachemark.analysis.rounds.texts import steal_text
from cachemark.model.outcome import Outcome
from tests.builders.rounds import SLICE_NS, run


def with_column(outcome: Outcome, name: str, values_ns: list[int], rest_ns: int = 0) -> Outcome:
    """The outcome whose first slices have these values in a column, and the others `rest_ns`."""
    assert outcome.rounds is not None
    slices = outcome.rounds.slices
    column = (values_ns + [rest_ns] * len(slices.ops))[: len(slices.ops)]
    slices = msgspec.structs.replace(slices, **{name: column})
    return msgspec.structs.replace(
        outcome, rounds=msgspec.structs.replace(outcome.rounds, slices=slices)
    )


def test_nothing_is_told_where_nothing_was_taken() -> None:
    assert steal(read_sittings(run({"a": 1e4, "b": 2e4}, 4))) == []


def test_steal_is_reported_of_the_arm_that_lost_most() -> None:
    outcomes = run({"a": 1e4, "b": 2e4}, 4)
    count = len(outcomes[0].rounds.slices.ops) if outcomes[0].rounds else 0
    # Of arm a, in each sitting one slice had a tenth of all of the arm's time there taken.
    taken_ns = SLICE_NS * count // 10
    found = steal(
        read_sittings(
            [
                with_column(o, "steal_ns", [taken_ns] if o.trial.cell.client == "a" else [])
                for o in outcomes
            ]
        )
    )
    one, other = found
    assert (one.cell.client, one.stolen, one.slices) == ("a", 4, 4 * count)
    assert one.share == pytest.approx(0.1)
    assert (other.stolen, other.share) == (0, 0)
    assert steal_text(found) == (
        f"The hypervisor took CPU time in 4 of {8 * count} slices:"
        " the most from a on embedded, 10.0 % of its time."
    )


def test_a_slice_that_waited_longer_than_usual_is_delayed() -> None:
    """A tenth of each slice is usual, as each wake-up takes a moment."""
    usual_ns, limit_ns = SLICE_NS // 10, SLICE_NS // 50
    more_ns = {"a": limit_ns + 1000, "b": limit_ns - 1000}
    found = steal(
        read_sittings(
            [
                with_column(o, "queued_ns", [usual_ns + more_ns[o.trial.cell.client]], usual_ns)
                for o in run({"a": 1e4, "b": 2e4}, 4)
            ]
        )
    )
    assert [(arm.stolen, arm.delayed) for arm in found] == [(0, 4), (0, 0)]
    assert steal_text(found) == ""


def test_a_slice_whose_waits_are_not_known_is_not_delayed() -> None:
    outcomes = run({"a": 1e4, "b": 2e4}, 4)
    assert steal(read_sittings([with_column(o, "queued_ns", [9**9], -1) for o in outcomes])) == []
