"""Simulated experiments whose truth is known: the quick version of benchmarks/rounds_simulation.py.

All draws are seeded. The bounds come from the methodology, plus 3 standard errors.
"""

import importlib
from types import ModuleType

import pytest

from cachemark.analysis.rounds.looks import StopRule
from tests.conftest import ROOT

EXPERIMENTS = 100
ONE_KIND = "`all of it` has this kind of noise too"


@pytest.fixture
def simulation(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("rounds_simulation")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("drift of 40 % over the run", marks=pytest.mark.slow(ONE_KIND)),
        pytest.param("heavy tails", marks=pytest.mark.slow(ONE_KIND)),
        "all of it",
    ],
)
def test_equal_clients_seldom_differ_significantly(simulation: ModuleType, name: str) -> None:
    machine = next(of for of in simulation.MACHINES if of.name == name)
    rates = [1.0] * simulation.ARMS
    truth = simulation.truth_of(machine, rates, sittings=500)
    errors = [simulation.run(machine, rates, n, truth, StopRule()) for n in range(EXPERIMENTS)]
    # 6 % and 3 standard errors of 100 experiments; 95 % less 3 of them.
    assert sum(of.twice for of in errors) <= 13
    assert sum(of.family for of in errors) <= 13
    assert sum(of.covered for of in errors) >= 88


@pytest.mark.parametrize(("deviation", "at_least"), [(0.02, 0.9), (0.04, 0.6)])
def test_a_difference_of_a_tenth_is_found(
    simulation: ModuleType, deviation: float, at_least: float
) -> None:
    machine = simulation.Machine("", sitting=deviation)
    detections = [simulation.find(machine, 1.1, seed, StopRule()) for seed in range(40)]
    assert sum(of.decided is not None for of in detections) >= at_least * 40


def test_looking_without_a_stricter_level_would_be_wrong_too_often(simulation: ModuleType) -> None:
    # The reason for stricter levels: at the ordinary level, three looks are wrong in about 10 %.
    machine, rates = simulation.MACHINES[0], [1.0] * simulation.ARMS

    class Careless(StopRule, frozen=True):
        @property
        def level(self) -> float:
            return 0.05

    careless = [simulation.run(machine, rates, n, 0.0, Careless()) for n in range(EXPERIMENTS)]
    strict = [simulation.run(machine, rates, n, 0.0, StopRule()) for n in range(EXPERIMENTS)]
    assert sum(of.twice for of in careless) > sum(of.twice for of in strict)
