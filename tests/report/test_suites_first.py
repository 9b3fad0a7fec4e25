"""The suites that repeat originals: each sentence has the order, and each rate, of its table."""

import random
import re

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cachemark.analysis.number_format import number
from cachemark.model import suites
from cachemark.model.client_name import parse_client_name
from cachemark.model.experiment import Experiment
from cachemark.model.outcome import Cell, Outcome
from cachemark.model.plan import make_plan
from cachemark.report.build import build
from cachemark.report.conclusions import conclusion_rows
from cachemark.report.model import Group, Report
from tests.builders.outcomes import at, header
from tests.report.test_published import FORMS, column, longer, outcome

# What a sentence may say of the first and the second of a ranking; their names are put in.
_WORDINGS = (
    r"(NAME) has the highest rate( of the libraries)?: [^×]+ × (NAME)[,.]",
    r"(NAME) is first( of the libraries)? and (NAME) second, but",
    r"(NAME) and (NAME), the first two( of the libraries)?, are equal",
)


def played(grid: Experiment, cells: list[Cell], seed: int, deviation: float) -> list[Outcome]:
    """Trials of some cells in three blocks; each cell has a level, and each trial its own luck."""
    draw = random.Random(seed)
    levels = {cell: draw.uniform(0.5, 2) for cell in cells}
    return [
        longer(
            at(
                outcome(grid.name, cell.client, cell.workload, cell.load, block), server=cell.server
            ),
            levels[cell] * draw.lognormvariate(0, deviation),
        )
        for block in range(3)
        for cell in cells
    ]


@pytest.mark.parametrize("suite", FORMS)
@settings(max_examples=4, deadline=None)
# The million reads of one process, whose table has another number in its title.
@example(seed=2642, deviation=0.001)
@given(seed=st.integers(0, 10_000), deviation=st.sampled_from([0.001, 0.05, 0.4]))
def test_sentences_name_the_first_two_of_their_tables(
    suite: str, seed: int, deviation: float
) -> None:
    grid = suites.find(suite)
    places = sorted({(cell.workload, cell.load) for cell in make_plan(grid).cells})
    place = places[seed % len(places)]
    cells = [
        cell
        for cell in make_plan(grid).cells
        if (cell.workload, cell.load) == place and not parse_client_name(cell.client).is_null
    ]
    made = build(header(grid), played(grid, cells, seed, deviation))
    assert made.groups
    for group in made.groups:
        check_group(made, group)
    check_published(made)


def check_group(made: Report, group: Group) -> None:
    """The sentence of a group, and its row on the page, against its table."""
    choices = [row.name for row in group.rows if not row.yardstick]
    rates = [row.summary.total.rate.value for row in group.rows if row.summary.total]
    assert len(rates) == len(group.rows)
    assert rates == sorted(rates, reverse=True)
    if len(choices) < 2:
        return
    start = f"{group.workload}, {group.load}, {group.common}: "
    (said, *_) = [line.removeprefix(start) for line in made.answers if line.startswith(start)]
    names = "|".join(re.escape(row.name) for row in group.rows)
    found = [
        match
        for words in _WORDINGS
        if (match := re.match(words.replace("NAME", names), said)) is not None
    ]
    if not found:
        assert said.startswith(("No first is named", "No answer")), said
        return
    beyond = " of the libraries" in said
    named = [name for name in found[0].groups() if name and name != " of the libraries"]
    assert named == choices[:2], said
    assert beyond == group.rows[0].yardstick, said
    (row,) = [
        row
        for row in conclusion_rows(made, [str(number_) for number_ in range(len(made.groups))])
        if made.groups[int(row.anchor)] is group
    ]
    assert row.first in ("–", choices[0])
    assert row.second in ("–", choices[1])


def check_published(made: Report) -> None:
    """A rate beside published figures is the one of the ranking."""
    ranked = {
        (row.summary.cell.client, number(row.summary.total.rate.value))
        for group in made.groups
        for row in group.rows
        if row.summary.total
    }
    for section in made.sections:
        if "right: ops/s" in section.columns:
            clients = column(section, "client of today")
            for label, rate in column(section, "right: ops/s").items():
                assert rate == "–" or (clients[label], rate) in ranked, label


def test_a_rate_beside_published_figures_is_of_both_arms() -> None:
    """Of the client that is played twice; the second arm is twice as slow."""
    grid = suites.find("ruby-clients")
    cells = [
        cell
        for cell in make_plan(msgspec.structs.replace(grid, clients=grid.clients[:2])).cells
        if cell.workload == "set-plain" and not parse_client_name(cell.client).is_null
    ]
    trials = [
        longer(
            outcome(grid.name, cell.client, cell.workload, cell.load, block),
            2 if cell.client.endswith("#again") else 1,
        )
        for block in range(3)
        for cell in cells
    ]
    made = build(header(grid), trials)
    ranked = next(row for group in made.groups for row in group.rows if row.name == "ruby/dalli")
    (section,) = [of for of in made.sections if "right: ops/s" in of.columns]
    assert ranked.summary.total is not None
    assert ranked.summary.total.rate.value == pytest.approx(1200 / 2**0.5)
    assert column(section, "right: ops/s")["dalli:set:plain"] == "849"
