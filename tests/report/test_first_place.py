"""Who is named first: never on too few blocks, never against the blocks that two share."""

from __future__ import annotations

import re

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from cachemark.model.experiment import Load
from cachemark.model.outcome import Outcome
from cachemark.report.answers import render
from cachemark.report.build import build
from cachemark.report.groups import LEAST_SHARED_BLOCKS, group_answer
from cachemark.report.model import Report
from cachemark.report.plots.ranking import leader
from tests.builders.outcomes import experiment, header, measured

CLIENTS = ["a", "b", "c"]
# A client → its rate in each block; 0: its trial there does not count.
Rates = dict[str, list[int]]


def report(rates: Rates, *, closed: bool = True) -> Report:
    load = Load(name="one") if closed else Load(name="one", schedule="poisson", rate=500)
    planned = msgspec.structs.replace(experiment(list(rates), 4), loads=[load])
    outcomes = [
        _trial(client, block, rate, load)
        for client, of_blocks in rates.items()
        for block, rate in enumerate(of_blocks)
    ]
    return build(header(planned), outcomes)


def _trial(client: str, block: int, rate: int, load: Load) -> Outcome:
    made = measured(client, block, rate or 500, index=10 * block + CLIENTS.index(client))
    if rate:
        return msgspec.structs.replace(made, load=load)
    return msgspec.structs.replace(made, load=load, verdict="INVALID", reasons=["made so"])


@settings(max_examples=40, deadline=None)
@given(
    rates=st.fixed_dictionaries(
        {client: st.lists(st.sampled_from([0, 400, 500, 800]), min_size=4, max_size=4)
         for client in CLIENTS}
    ),
    closed=st.booleans(),
)  # fmt: skip
def test_nobody_is_named_first_against_the_evidence(rates: Rates, *, closed: bool) -> None:
    made = report(rates, closed=closed)
    (group,) = made.groups
    text = group_answer(group)
    if " is first " not in text:
        assert not leader(group) or " only " in text
        assert " is second" not in text
        return
    named = re.search(r": (\w) is first .*; (\w) is second, with ([0-9.]+)", text)
    assert named is not None
    first, second, times = named[1], named[2], float(named[3])
    assert leader(group) == first
    assert times <= 1 if closed else times >= 1
    shared = [x for x, y in zip(rates[first], rates[second], strict=True) if x and y]
    assert len(shared) >= LEAST_SHARED_BLOCKS
    compared = [row.comparison for row in group.rows if row.comparison]
    assert all(c.ratio.value <= 1 if closed else c.ratio.value >= 1 for c in compared)


def test_one_shared_block_names_nobody() -> None:
    made = report({"a": [900, 900, 0, 0], "b": [0, 500, 500, 500]})
    (group,) = made.groups
    assert group_answer(group).endswith(
        "nobody is named first: a and b have 1 block with a valid trial of both, and 2 are needed; "
        "a has 927 ops/s."
    )
    assert not leader(group)
    assert "is first" not in render(made, 100)


def test_all_blocks_may_contradict_the_shared_ones() -> None:
    # Through c, a seems to be far above b; in the blocks of both, b is above a.
    made = report({
        "a": [500, 500, 900, 900, 0],
        "b": [600, 600, 0, 0, 100],
        "c": [0, 0, 100, 100, 900],
    })  # fmt: skip
    (group,) = made.groups
    assert "over all blocks a is ahead, but in the 2 blocks with a valid trial of both, b is" in (
        group_answer(group)
    )
    assert "of the fastest" in render(made, 100)
    assert all(row.comparison is None for row in group.rows)
