"""Who is named first: never on too few blocks, never against the blocks that two share."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachemark.analysis.rounds.looks import MIN_BLOCKS
from cachemark.model.experiment import Load
from cachemark.model.outcome import Outcome
from cachemark.report.answers import render
from cachemark.report.build import build
from cachemark.report.conclusions import first_of, one_sentence
from cachemark.report.model import Report
from cachemark.report.plots.ranking import leader
from cachemark.report.run_head import build_head
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
    made, head = build(header(planned), outcomes), build_head(header(planned), outcomes)
    assert (first_of(head), one_sentence(head)) == (first_of(made), one_sentence(made))
    return made


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
    text, first = one_sentence(made), leader(group)
    if not first:
        assert any(
            words in text
            for words in (
                "No first is named",
                "no answer yet",
                "No answer",
                "has a valid figure",
            )
        )
        return
    assert first in text
    compared = [row.comparison for row in group.rows if row.comparison]
    if group.lead is None:
        assert not compared
        return
    assert group.rows[0].name == first == group.name_of(group.lead.first)
    second = group.name_of(group.lead.second)
    shared = [x for x, y in zip(rates[first], rates[second], strict=True) if x and y]
    assert len(shared) >= MIN_BLOCKS
    ratios = [of.ratio.value for of in compared if of.ratio]
    assert len(ratios) == len([row for row in group.rows if row.summary.valid]) - 1
    assert all(ratio <= 1 + 1e-9 if closed else ratio >= 1 - 1e-9 for ratio in ratios)


def test_one_shared_block_names_nobody() -> None:
    made = report({"a": [900, 900, 0, 0], "b": [0, 500, 500, 500]})
    (group,) = made.groups
    assert "Within 1 block, a has the highest rate" in one_sentence(made)
    assert "That is no answer yet: it takes 2 blocks." in one_sentence(made)
    assert not leader(group)
    assert "is first" not in render(made, 100)


def test_the_shared_blocks_decide_who_is_first() -> None:
    # Over all of its blocks a has a higher mean than b; in the blocks of both, b is above a.
    made = report({
        "a": [500, 500, 900, 900, 0],
        "b": [600, 600, 0, 0, 100],
        "c": [0, 0, 100, 100, 900],
    })  # fmt: skip
    (group,) = made.groups
    assert leader(group) == "b"
    (row,) = [row for row in group.rows if row.name == "a"]
    assert row.comparison is not None
    assert row.comparison.ratio is not None
    assert row.comparison.ratio.value == pytest.approx(5 / 6, rel=0.05)
