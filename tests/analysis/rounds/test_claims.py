"""Claims of reports about their own errors, played: the quick version of benchmarks/claims.py."""

import importlib
from types import ModuleType

import numpy as np
import pytest

from tests.conftest import ROOT

RUNS = 60


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("claims")


@pytest.mark.slow("it plays each claim 60 times")
def test_every_claim_holds_as_often_as_it_says(claims: ModuleType) -> None:
    """All draws are seeded; a claim fails that is wrong three times as often as it says."""
    played = [(of, claims.share(of, RUNS)) for of in claims.claims()]
    assert [(of.name, found) for of, found in played if not of.agrees(found, RUNS)] == []


def test_fixed_slices_overstate_the_rate_of_many_callers(claims: ModuleType) -> None:
    """The model can show the bias: 16 callers whose operations take 1.6 ms, in 30 ms."""
    shared = claims.Shared(callers=16, order="random", sizes="constant", mean_ns=1e5)
    assert claims.told(shared, 30.0, 10, np.random.default_rng(1)) > 1.02
    in_turn = shared._replace(order="arrival")
    assert claims.told(in_turn, 30.0, 10, np.random.default_rng(1)) == pytest.approx(1, abs=0.002)


def test_a_claim_that_does_not_hold_is_found(claims: ModuleType) -> None:
    """One that is wrong five times as often as it says."""

    def in_a_quarter(draw: np.random.Generator) -> bool:
        return draw.random() < 0.25

    wrong = claims.Claim("wrong", 0.05, in_a_quarter)
    assert not wrong.agrees(claims.share(wrong, RUNS), RUNS)
    assert not claims.Claim("wrong", 0.95, wrong.holds).agrees(claims.share(wrong, RUNS), RUNS)
