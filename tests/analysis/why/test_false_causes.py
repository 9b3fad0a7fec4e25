"""How often chance alone makes a cause, on simulated counts of clients that do the same."""

from __future__ import annotations

import random

import msgspec
import pytest

from cachemark.analysis.why.estimate import difference_of, estimate_of
from cachemark.analysis.why.report import differences
from cachemark.model.counts import CountedWork, Counts
from tests.analysis.why.test_causes import PLAIN

# Standard deviations of counts on a busy machine.
NOISE = {
    "recvs": 0.1, "empty_recvs": 0.4, "polls": 0.3, "futexes": 0.5, "wakes": 0.2, "memory": 0.5,
    "others": 0.4, "user_us": 5.0, "system_us": 8.0, "switches": 0.6, "waiting_threads": 0.4,
    "faults": 2.0, "allocations": 3.0, "allocated_bytes": 900.0, "copies": 0.4,
    "collection_us": 1.0,
}  # fmt: skip
KINDS = ("get", "set", "delete")
ANSWERS, MOST_FALSE = 150, 5


def noisy(rng: random.Random) -> Counts:
    more = {name: getattr(PLAIN, name) + rng.gauss(0, size) for name, size in NOISE.items()}
    return msgspec.structs.replace(PLAIN, **more)


@pytest.mark.parametrize("repeat", [3, 5])
def test_chance_seldom_gives_an_answer_a_cause(repeat: int) -> None:
    rng = random.Random(repeat)
    causes = times = 0
    for _ in range(ANSWERS):
        found = differences(
            [
                CountedWork(
                    client=client, kind=kind, repetitions=[noisy(rng) for _ in range(repeat)]
                )
                for kind in KINDS
                for client in ("a", "b")
            ]
        )
        causes += any(each.findings or each.findings_of_base for each in found)
        times += any(each.time is not None for each in found)
    # 1 of 100 is expected. With 99 % for each count by itself, it would be 25 of 100.
    assert causes <= MOST_FALSE
    assert times <= MOST_FALSE


def test_a_gap_in_one_client_leaves_the_other_repetitions_paired() -> None:
    one = [Counts(faults=value) for value in (1.0, None, 3.0, 4.0)]
    other = [Counts(faults=value) for value in (0.0, 9.0, 2.0, 3.0)]
    found = difference_of(one, other, "faults")
    assert found
    assert (found.value, found.error) == (1, 0)


def test_too_few_repetitions_with_a_count_have_no_estimate() -> None:
    assert estimate_of([Counts(faults=value) for value in (1.0, None, 3.0)], "faults") is None
