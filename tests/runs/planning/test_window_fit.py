"""What a plan says of windows that are too short for a p99."""

from __future__ import annotations

import msgspec
import pytest

from cachemark.model.experiment import Load
from cachemark.model.plan import make_plan
from cachemark.runs.planning.data_fit import lines_about_windows
from tests.builders.outcomes import experiment


def lines(rate: float, measure_ms: int) -> list[str]:
    made = experiment(["a", "b"])
    timing = msgspec.structs.replace(made.timing, measure_ms=measure_ms)
    load = Load(name=made.loads[0].name, schedule="poisson", rate=rate)
    return lines_about_windows(
        make_plan(msgspec.structs.replace(made, loads=[load], timing=timing))
    )


@pytest.mark.parametrize(
    ("rate", "words", "longer"),
    [(500, "has 5 operations above its p99", 4000), (100, "has no p99, which takes 368", 20_000)],
)
def test_a_window_with_too_few_operations_is_told_with_the_length_that_it_needs(
    rate: float, words: str, longer: int
) -> None:
    (line,) = lines(rate, 1000)
    assert words in line
    assert line.endswith(f"--measure-ms {longer}")
    assert lines(rate, longer) == []


def test_nothing_is_said_of_a_closed_loop_and_of_a_search() -> None:
    made = experiment(["a"])
    assert lines_about_windows(make_plan(made)) == []
    load = Load(name=made.loads[0].name, schedule="poisson")
    search = msgspec.structs.replace(made, search="p99<1ms", loads=[load])
    assert lines_about_windows(make_plan(search)) == []
