"""A function that was planted in a copy of a library is the heaviest of its profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachemark.analysis.why.profile import shares_of
from cachemark.endpoints.clients import ClientSpec, parse_client, registry
from cachemark.host import process
from cachemark.model.counts import FoldedStacks
from cachemark.model.experiment import Keys, Load, Values, Workload
from cachemark.runs.counting.counting import CountingPlan, count
from tests.runs.counting.planted_copies import CHANGED, original, planted

SAMPLERS = {
    "c/libmemcached": "perf",
    "native": "perf",
    "perl/memcached": "Devel::NYTProf",
    "php/memcached": "perf",
    "rust/memcache": "perf",
}
FUNCTIONS = {
    "go": "checkKey",
    "node": "checkKey",
    "python": "planted_check_key",
    "ruby": "check_key",
}


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
    profile = sampled_often(planned(changed))
    if profile.failure.startswith(("no ", "py-spy")):
        pytest.skip(profile.failure)
    assert not profile.failure
    shares = shares_of(profile)
    assert FUNCTIONS[language] in next(iter(shares.functions))
    own = [name for name in shares.classes if name not in ("kernel", "cachemark's loop")]
    assert own[0] == "key check"


@pytest.mark.slow("samples a client for some seconds")
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_client_is_sampled_by_the_tool_of_its_language(name: str) -> None:
    spec = parse_client(name, registry(process.binary_path()))
    if missing := spec.client.missing():
        pytest.skip(missing)
    profile = sampled_often(planned(spec))
    if profile.failure.startswith(("no ", "perf")):
        pytest.skip(f"{SAMPLERS[name]} cannot sample here: {profile.failure}")
    assert not profile.failure
    assert profile.sampler.startswith(SAMPLERS[name])
    shares = shares_of(profile)
    assert shares.classes.keys() >= {"library"} or shares.functions


def test_an_interpreter_without_a_sampler_says_so() -> None:
    spec = parse_client("pypy/pymemcache", registry(process.binary_path()))
    if missing := spec.client.missing():
        pytest.skip(missing)
    (profile,) = count(planned(spec), process.binary_path(), lambda _: None).profiles
    assert profile.failure == "no sampler of PyPy: py-spy reads CPython alone"


def planned(client: ClientSpec) -> CountingPlan:
    return CountingPlan(
        clients=[client],
        workload=Workload(
            name="get", mix={"get": 1}, keys=Keys(count=50, length="20"), values=Values(size="100")
        ),
        load=Load(name="one-caller"),
        repeat=1,
        profile_ms=3000,
    )
