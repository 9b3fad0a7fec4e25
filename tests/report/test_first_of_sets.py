"""Clients in several sets: whoever is named first is ahead of all others, wherever it is said."""

import random
from itertools import pairwise
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cachemark.model.experiment import RoundsTiming
from cachemark.model.outcome import Cell, Outcome
from cachemark.report.answers import render
from cachemark.report.build import build
from cachemark.report.conclusions import conclusion_rows, one_sentence
from cachemark.report.model import ClientRow, Group, Report
from cachemark.report.plots.ranking import leader
from cachemark.report.tables import share_text
from tests.builders import rounds as made
from tests.builders.outcomes import experiment, header

NAMES_FIRST = ("has the highest rate", " is first and ", "the first two, are equal")


class Design(NamedTuple):
    """Sets that share their first `shared` clients; `missing` of 100 outcomes do not count."""

    sets: int
    shared: int
    own: int
    sittings: int
    native: bool
    deviation: float
    missing: int
    seed: int


designs = st.builds(
    Design,
    sets=st.integers(1, 3),
    shared=st.integers(1, 2),
    own=st.integers(1, 2),
    sittings=st.integers(1, 5),
    native=st.booleans(),
    deviation=st.sampled_from([0.001, 0.02, 0.3]),
    missing=st.sampled_from([0, 0, 20]),
    seed=st.integers(0, 10_000),
)


def members(design: Design) -> list[list[str]]:
    shared = ["native" if design.native else "r0", "r1"][: design.shared]
    return [
        [*shared, *(f"c{part}{own}" for own in range(design.own))] for part in range(design.sets)
    ]


def outcomes(design: Design) -> list[Outcome]:
    """Every sitting meets the machine at another speed, and every client's level is its own."""
    draw = random.Random(design.seed)
    rates = {name: draw.uniform(9_000, 12_000) for part in members(design) for name in part}
    return [
        outcome
        for block in range(design.sittings)
        for part, names in enumerate(members(design))
        for outcome in _sitting({name: rates[name] for name in names}, block, part, design, draw)
        if draw.randrange(100) >= design.missing
    ]


def _sitting(
    rates: dict[str, float], block: int, part: int, design: Design, draw: random.Random
) -> list[Outcome]:
    speed = draw.uniform(0.5, 1)
    levels = [speed * rate * draw.lognormvariate(0, design.deviation) for rate in rates.values()]
    cells = [Cell(client=name, server="embedded", workload="mixed", load="one") for name in rates]
    played = made.sitting(len(cells), 1, lambda arm, _before, _number: levels[arm], block)
    return [
        made.outcome(cell, block, cells, slices, part=part)
        for cell, slices in zip(cells, played, strict=True)
    ]


def report(played: list[Outcome]) -> Report:
    clients = list(dict.fromkeys(outcome.trial.cell.client for outcome in played))
    planned = msgspec.structs.replace(
        experiment(clients, 6), design="rounds", rounds=RoundsTiming(until="fixed")
    )
    return build(header(planned), played)


def choices(group: Group) -> list[ClientRow]:
    return [row for row in group.rows if row.summary.total and not row.yardstick]


# One sitting, two sets: a row had the rate of the first, and a ratio of 1.18 to it.
@example(Design(2, 2, 1, 1, native=False, deviation=0.3, missing=0, seed=2))
# The test of the first against the second had p = 0.02, the interval for all ten pairs had 1 in it.
@example(Design(1, 2, 3, 6, native=False, deviation=0.03, missing=0, seed=4))
# The same beside a yardstick.
@example(Design(1, 2, 3, 6, native=True, deviation=0.03, missing=0, seed=4))
@settings(max_examples=60, deadline=None)
@given(designs)
def test_nobody_is_named_first_whom_another_one_is_ahead_of(design: Design) -> None:
    found = report(outcomes(design))
    for group in found.groups:
        rates = [row.summary.total.rate.value for row in choices(group) if row.summary.total]
        if len(rates) < 2:
            continue
        falling = all(x >= y * (1 - 1e-9) for x, y in pairwise(rates))
        assert falling or "no reference" in group.no_first
        (line, *_) = [answer for answer in found.answers if answer.startswith("mixed, one")]
        (row,) = conclusion_rows(found, ["here"])
        if not leader(group):
            check_nobody(found, line)
            continue
        first = choices(group)[0].name
        assert leader(group) == row.first == first
        assert first in line
        assert "No first is named" not in render(found, 200)
        check_ratios(choices(group), rates)
        check_intervals(group)


def check_nobody(found: Report, line: str) -> None:
    """Neither the sentence, nor the headline, nor the page's table has a first."""
    (row,) = conclusion_rows(found, ["here"])
    assert (row.first, row.second, row.difference) == ("–", "–", "–")
    assert "No first is named: " in line
    # The second may be the one that the first is not ahead of.
    assert "differs from" not in line
    for text in (line.partition("Settled within")[0], one_sentence(found)):
        assert not any(words in text.partition("Settled within")[0] for words in NAMES_FIRST)
    assert found.rounds is not None
    assert all(ranking.lead is None for ranking in found.rounds.groups[0].rankings[:1])


def check_ratios(rows: list[ClientRow], rates: list[float]) -> None:
    """No client is above 1, and the ratios equal the ratios of the rates beside them."""
    for row, rate in zip(rows[1:], rates[1:], strict=True):
        assert row.comparison is not None
        ratio = row.comparison.ratio
        assert ratio is not None
        assert ratio.value <= 1
        assert ratio.value == pytest.approx(rate / rates[0])


def check_intervals(group: Group) -> None:
    """The lead has the interval of the second's row, and no interval leaves a named first open."""
    _, second, *_ = choices(group)
    assert group.lead is not None
    assert second.comparison is not None
    lead, behind = group.lead.reversed().ratio, second.comparison.ratio
    assert lead is not None
    assert behind is not None
    if behind.low is None or behind.high is None or lead.low is None or lead.high is None:
        return
    assert (lead.low, lead.high) == pytest.approx((behind.low, behind.high))
    reach = 1 + experiment([]).margin_percent / 100
    for row in choices(group)[1:]:
        of = row.comparison.ratio if row.comparison else None
        if group.lead.answer == "better":
            assert of is not None
            assert (of.high or 1) < 1
            assert " ~" not in share_text(row)
    if group.lead.answer == "equal":
        assert 1 / reach <= behind.low < behind.high <= reach


def _two_sets(bridge: float) -> Report:
    """Of the set that met a slow machine, b is 1.16 × a, which met a fast one.

    The level of the native client, which both sets have, differs between sittings by `bridge`.
    """
    draw = random.Random(1)
    design = Design(2, 1, 1, 6, True, 0.005, 0, 1)
    sets = ({"a": 10_000, "x": 8_000}, {"b": 4_640, "y": 2_000})
    played = [
        outcome
        for block in range(6)
        for part, (native, rates) in enumerate(zip((20_000, 8_000), sets, strict=True))
        for level in [native * draw.lognormvariate(0, bridge)]
        for outcome in _sitting({"native": level, **rates}, block, part, design, draw)
    ]
    return report(played)


def test_the_bridge_decides_between_sets_and_not_the_machines_speed() -> None:
    found = _two_sets(bridge=0.005)
    (group,) = found.groups
    assert [row.name for row in group.rows] == ["native", "b", "a", "x", "y"]
    assert leader(group) == "b"
    (line, *_) = found.answers
    assert "b has the highest rate of the libraries: 1.1" in line
    assert "× a, the second." in line
    native = group.rows[0]
    assert native.comparison is not None
    assert native.comparison.ratio is not None
    assert native.comparison.ratio.value == pytest.approx(8 / 4.64, rel=0.02)


def test_too_wide_a_bridge_names_only_the_sets_leaders() -> None:
    found = _two_sets(bridge=0.3)
    (group,) = found.groups
    assert not leader(group)
    said = " ".join(one_sentence(found).split())
    assert "No first is named: b never met a" in said
    assert "is not settled: 1." in said
    assert "Settled within their sets by rate: " in said
    assert "b " in said.partition("Settled within")[2]
    assert "× y" in said
