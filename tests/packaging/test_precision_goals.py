"""The goals of the benchmark of precision: met, or how many minutes they take."""

import importlib
from types import ModuleType

import pytest

from cachemark.analysis.rounds.answers import Answers, answers
from cachemark.analysis.rounds.looks import StopRule
from cachemark.analysis.rounds.questions import questions_of
from cachemark.analysis.statistics import Interval
from tests.builders.rounds import run
from tests.conftest import ROOT

RATES = {"a": 10_000, "a#again": 10_000, "b": 11_500, "c": 20_000}


@pytest.fixture
def goals(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("precision_goals")


def answered(deviation: float, sittings: int = 6) -> Answers:
    made = run(RATES, sittings, deviation=deviation)
    asked = questions_of(list(dict.fromkeys(of.trial.cell for of in made)))
    return answers(made, asked, StopRule(), final=True)


def test_a_quiet_machine_meets_all_of_them(goals: ModuleType) -> None:
    found = goals.goals_of(answered(0.002), 120.0, loaded=False)
    assert [goal.met for goal in found] == [True, True, True]
    assert all(goal.line().endswith("met") for goal in found)
    assert "3 of 3" in found[2].line()


def test_a_noisy_machine_takes_minutes_that_grow_with_the_square(goals: ModuleType) -> None:
    rate, _, told = goals.goals_of(answered(0.08), 120.0, loaded=False)
    assert not rate.met
    assert not told.met
    assert "within ±3 %" in rate.name
    width = float(rate.measured.partition("±")[2].partition(" ")[0])
    assert rate.minutes == pytest.approx(2 * (width / 3) ** 2, rel=0.05)
    assert f"takes {int(rate.minutes) + 1} minutes here" in rate.line()
    (loaded, *_) = goals.goals_of(answered(0.08), 120.0, loaded=True)
    assert loaded.minutes == pytest.approx(rate.minutes * (3 / 8) ** 2)


def test_too_few_sittings_have_no_interval_to_judge(goals: ModuleType) -> None:
    made = answered(0.02, sittings=1)
    assert not any(goal.met for goal in goals.goals_of(made, 20.0, loaded=False)[2:])


def test_rounds_and_trials_are_brought_to_the_same_time(goals: ModuleType) -> None:
    narrow, wide = Interval(value=1, low=1 / 1.02, high=1.02), Interval(value=1, low=0.8, high=1.25)
    same = goals.narrower_goal((narrow, 60.0), (wide, 60.0))
    assert (same.met, same.measured) == (True, "12.5 times")
    assert goals.narrower_goal((narrow, 240.0), (wide, 15.0)).measured == "3.1 times"
    assert not goals.narrower_goal((narrow, 60.0), (None, 60.0)).met
