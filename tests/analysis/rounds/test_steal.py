"""CPU time that the hypervisor took: how often, and how far it moves ratios."""

from __future__ import annotations

import msgspec
import pytest

from cachemark.analysis.rounds.pairs import read_sittings
from cachemark.analysis.rounds.steal import steal
from cachemark.analysis.rounds.texts import steal_text
from cachemark.model.outcome import Outcome
from tests.builders.rounds import SLICE_NS, run


def stolen(outcome: Outcome, taken_ns: list[int]) -> Outcome:
    assert outcome.rounds is not None
    slices = outcome.rounds.slices
    taken = (taken_ns + [0] * len(slices.ops))[: len(slices.ops)]
    slices = msgspec.structs.replace(slices, steal_ns=taken)
    return msgspec.structs.replace(
        outcome, rounds=msgspec.structs.replace(outcome.rounds, slices=slices)
    )


def test_nothing_is_told_where_nothing_was_taken() -> None:
    assert steal(read_sittings(run({"a": 1e4, "b": 2e4}, 4))) is None


def test_what_was_taken_from_an_arm_is_the_least_that_ratios_moved() -> None:
    outcomes = run({"a": 1e4, "b": 2e4}, 4)
    count = len(outcomes[0].rounds.slices.ops) if outcomes[0].rounds else 0
    # Of arm a, in each sitting one slice had a tenth of all of the arm's time there taken.
    taken_ns = SLICE_NS * count // 10
    found = steal(
        read_sittings(
            [stolen(o, [taken_ns] if o.trial.cell.client == "a" else []) for o in outcomes]
        )
    )
    assert found is not None
    one, other = found.arms
    assert (one.cell.client, one.stolen, one.slices) == ("a", 4, 4 * count)
    assert one.share == pytest.approx(0.1)
    assert (other.stolen, other.slower) == (0, 1)
    assert found.moves == pytest.approx(1 / 0.9)
    assert steal_text(found) == (
        f"The hypervisor took CPU time in 4 of {8 * count} slices;"
        " that moves ratios by 11.1 % or more."
    )
