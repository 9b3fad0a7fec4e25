"""The ranking of a run in turns that goes on: the estimates of its answers."""

import json
from pathlib import Path

import msgspec
import pytest

from cachemark.cli.logged_display import ranked, trial_ended
from cachemark.model.events import AnswersTold, Event, Position, Ranked, RankedPlace, Started
from cachemark.model.outcome import Cell, Outcome
from cachemark.report.live import LiveState
from cachemark.report.rounds import standing, standing_lines
from cachemark.runs.events.log import EventLog, EventReader
from cachemark.web.live.feed import Feed
from tests.builders.outcomes import experiment
from tests.builders.rounds import outcome, sitting
from tests.web.test_live import started

RATES = {"faster": 11_000.0, "slower": 10_000.0}
# The machine is slow in the last sitting, and there the slower client has no valid trial.
SPEEDS = (1.0, 1.0, 1.0, 0.2)
PLANNED = msgspec.structs.replace(experiment(list(RATES), len(SPEEDS)), design="rounds")


def in_turns() -> Started:
    """The event of a run in turns that this process plays."""
    return msgspec.structs.replace(started(), unit="sitting")


def outcomes() -> list[Outcome]:
    """Sittings of both clients."""
    cells = [Cell(client=c, server="embedded", workload="mixed", load="one") for c in RATES]
    found: list[Outcome] = []
    for block, speed in enumerate(SPEEDS):
        made = sitting(2, 2, lambda arm, *_, s=speed: s * RATES[cells[arm].client], seed=block)
        found += [outcome(cell, block, cells, own) for cell, own in zip(cells, made, strict=True)]
    found[-1] = msgspec.structs.replace(found[-1], verdict="INVALID", reasons=["noise"])
    return found


def state_after(folder: Path, *events: Event) -> LiveState:
    log, state = EventLog(folder), LiveState()
    for event in events:
        log.write(event)
    for line in EventReader(folder).new_lines():
        state.apply(line)
    return state


def test_it_is_that_of_the_sentences_where_means_say_otherwise(tmp_path: Path) -> None:
    played = outcomes()
    trials = [trial_ended(one) for one in played]
    found = standing(PLANNED, played)
    state = state_after(tmp_path, in_turns(), *trials, *ranked(found))
    (ranking,) = state.rankings()
    assert ranking.in_turns
    assert [row.name for row in ranking.rows] == ["faster", "slower"]
    assert [row.is_first for row in ranking.rows] == [True, False]
    first, second = ranking.rows
    assert first.value is not None
    assert second.value is not None
    assert second.value / first.value == pytest.approx(10 / 11, rel=0.01)
    assert (second.valid, second.trials) == (3, 4)
    assert standing_lines(found)[0] == "  embedded: faster 1 · slower 0.909"
    # The reason for the test: the mean of the trials has the other order.
    rates = {name: [t.rate for t in trials if t.cell[0] == name and t.rate] for name in RATES}
    means = {name: sum(of) / len(of) for name, of in rates.items()}
    assert means["slower"] > means["faster"]


def test_a_ranking_of_many_clients_comes_in_parts(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(9)]
    places = [
        RankedPlace(name=name, cell=[name, "embedded", "mixed", "one"], value=100.0)
        for name in names
    ]
    parts = [
        Ranked(title="embedded", by_rate=True, at=at, places=places[at : at + 6]) for at in (0, 6)
    ]
    (ranking,) = state_after(tmp_path, in_turns(), *parts, *parts).rankings()
    assert [row.name for row in ranking.rows] == names


def test_without_answers_yet_there_is_no_ranking(tmp_path: Path) -> None:
    assert state_after(tmp_path, in_turns(), trial_ended(outcomes()[0])).rankings() == []


def test_what_comes_after_the_trials_is_sent_too(tmp_path: Path) -> None:
    played = outcomes()
    log = EventLog(tmp_path)
    log.write(in_turns())
    log.write(trial_ended(played[0]))
    last = Feed(tmp_path).snapshot()["id"]
    assert last == 2
    log.write(Position(number=1, total=4, what="a"))
    assert [name for name, _ in Feed(tmp_path).messages(2)[1]] == ["status"]
    for event in ranked(standing(PLANNED, played)):
        log.write(event)
    log.write(AnswersTold(lines=["faster 1"]))
    sent = [(name, json.loads(data)) for name, data in Feed(tmp_path).messages(3)[1]]
    assert "points" not in dict(sent)
    assert [row["name"] for row in dict(sent)["ranking"]["rows"]] == ["faster", "slower"]
    assert ("words", {"answers": ["faster 1"]}) in sent
