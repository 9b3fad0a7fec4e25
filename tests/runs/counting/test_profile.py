"""A function that was planted in a copy of a library is the heaviest of its profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachemark.analysis.why.profile import shares_of
from cachemark.host import process
from cachemark.model.counts import FoldedStacks
from cachemark.model.experiment import Keys, Load, Values, Workload
from cachemark.runs.counting.counting import CountingPlan, count
from tests.runs.counting.test_planted_languages import CHANGED, original, planted

FUNCTIONS = {"go": "checkKey", "python": "planted_check_key", "ruby": "check_key"}


# On a busy machine a sampler may take few samples, or none.
LEAST_SAMPLES, TRIES = 30, 10


def sampled_often(plan: CountingPlan) -> FoldedStacks:
    """The first profile of the plan's client that has enough samples, or that cannot be taken."""
    for _ in range(TRIES):
        (profile,) = count(plan, process.binary_path(), lambda _: None).profiles
        too_few = not profile.failure or profile.failure == "the sampler took no sample"
        if profile.samples >= LEAST_SAMPLES or not too_few:
            return profile
    pytest.fail(f"the sampler took fewer than {LEAST_SAMPLES} samples {TRIES} times")


@pytest.mark.slow("samples a copy of a library for some seconds")
@pytest.mark.parametrize("language", FUNCTIONS)
def test_a_planted_function_is_the_heaviest_of_the_library(language: str, tmp_path: Path) -> None:
    spec = original(language)
    changed = planted(spec, CHANGED[language](spec, tmp_path), "a slow key check")
    plan = CountingPlan(
        clients=[changed],
        workload=Workload(
            name="get", mix={"get": 1}, keys=Keys(count=50, length="20"), values=Values(size="100")
        ),
        load=Load(name="one-caller"),
        repeat=1,
        profile_ms=3000,
    )
    profile = sampled_often(plan)
    if profile.failure.startswith(("no ", "py-spy")):
        pytest.skip(profile.failure)
    assert not profile.failure
    shares = shares_of(profile)
    assert FUNCTIONS[language] in next(iter(shares.functions))
    own = [name for name in shares.classes if name not in ("kernel", "cachemark's loop")]
    assert own[0] == "key check"
