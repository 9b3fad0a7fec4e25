"""One run: what is paired with what."""

from typing import Any

import msgspec
import pytest

from cachemark.model.client_name import REPEAT_SUFFIX
from cachemark.model.errors import UsageError
from cachemark.model.outcome import Outcome
from cachemark.report.compare import CellFilter, ComparisonReport, compare_within_run
from tests.builders.outcomes import numbered
from tests.builders.stored_runs import all_at, made_header, trials


def compared(outcomes: list[Outcome], **wanted: Any) -> ComparisonReport:
    return compare_within_run(
        made_header("run"), numbered(outcomes), CellFilter(**wanted), ("rate",), 2.0
    )


def rows(of: ComparisonReport) -> list[tuple[str, str, str, str]]:
    return [
        (row.baseline.client, row.other.client, row.other.server, row.comparisons[0].answer)
        for row in of.rows
    ]


def test_pairing_sees_through_drift() -> None:
    # Every block is 5 % faster than the one before; the clients differ by 10 %.
    found = compared([*trials("a", 2000), *trials("b", 1800)], client=("a", "b"))
    assert rows(found) == [("a", "b", "embedded", "worse")]
    assert found.paired
    assert found.other == "b"


def test_the_first_is_the_baseline_of_all_others() -> None:
    outcomes = [*trials("a", 1800), *trials("b", 2000), *trials("c", 900)]
    found = compared(outcomes, client=("b", "c", "a"))
    assert rows(found) == [("b", "c", "embedded", "worse"), ("b", "a", "embedded", "worse")]
    assert found.other == ""
    assert found.tests == 2


def test_ratio_within_own_error_is_open_and_says_so() -> None:
    again = trials(f"a{REPEAT_SUFFIX}", 1800)
    head = made_header("run")
    twice = msgspec.structs.replace(head.experiment, twice="a")
    of = compare_within_run(
        msgspec.structs.replace(head, experiment=twice),
        numbered([*trials("a", 2000), *again, *trials("b", 2000)]),
        CellFilter(client=("a", "b")),
        ("rate",),
        2.0,
    )
    (ratio,) = of.rows[0].comparisons
    # The rate of a is the geometric mean of both of its arms.
    assert ratio.ratio
    assert ratio.ratio.value == pytest.approx((2000 / 1800) ** 0.5, rel=0.01)
    assert (ratio.answer, ratio.within_own_error) == ("open", True)
    (note,) = [note for note in of.notes if "own error" in note]
    assert ratio.bound > 2000 / 1800
    assert f"differences below {100 * ratio.bound - 100:.1f} %" in note
    assert not any("vary too much" in note for note in of.notes)
    # Without the second arm, the same difference is an answer.
    alone = compared([*trials("a", 1897), *trials("b", 2000)], client=("a", "b"))
    assert rows(alone) == [("a", "b", "embedded", "better")]


def test_servers_are_compared_client_by_client() -> None:
    outcomes = [
        *trials("a", 2000),
        *trials("b", 1000),
        *all_at(trials("a", 3000), server="memcached"),
        *all_at(trials("b", 1500), server="memcached"),
    ]
    found = compared(outcomes, server=("embedded", "memcached"))
    assert rows(found) == [("a", "a", "memcached", "better"), ("b", "b", "memcached", "better")]
    (alone,) = compared(outcomes, server=("embedded", "memcached"), client=("b",)).rows
    assert alone.other.client == "b"


def test_loads_are_compared_and_workloads_are_not() -> None:
    outcomes = [*trials("a", 2000), *all_at(trials("a", 3000), load="four")]
    assert len(compared(outcomes, load=("one", "four")).rows) == 1
    other = [*trials("a", 2000), *all_at(trials("a", 3000), workload="writes")]
    with pytest.raises(UsageError, match="nothing to compare was named"):
        compared(other, workload=("mixed", "writes"))


def test_an_in_process_cache_meets_the_client_of_each_server() -> None:
    outcomes = [
        *all_at(trials("local", 9000), server="none"),
        *trials("a", 2000),
        *all_at(trials("a", 2000), server="memcached"),
    ]
    found = compared(outcomes, client=("local", "a"))
    assert [row.other.server for row in found.rows] == ["embedded", "memcached"]
    back = compared(outcomes, client=("a", "local"))
    assert [(row.baseline.server, row.other.server) for row in back.rows] == [
        ("embedded", "none"),
        ("memcached", "none"),
    ]


def test_what_cannot_be_paired_is_named() -> None:
    gone = [
        msgspec.structs.replace(t, state="unsupported", verdict=None, measure=None, reason="no x")
        for t in trials("b", 1000)
    ]
    outcomes = [*trials("a", 2000), *gone, *trials("c", 1000)]
    found = compared(outcomes, client=("a", "b", "c"))
    assert found.lost == ["b · embedded · mixed · one: no x"]
    back = compared(outcomes, client=("c", "a"))
    assert back.left_out == []
    with pytest.raises(UsageError, match="no cell of b can be compared"):
        compared(outcomes, client=("b", "a"))


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({}, "nothing to compare was named"),
        ({"client": ("a",)}, "nothing to compare was named"),
        ({"client": ("a", "a")}, "cannot be compared with itself"),
        ({"client": ("a", "b"), "server": ("x", "y")}, "both have several values"),
        ({"client": ("a", "d")}, "--client d: not in run"),
    ],
)
def test_what_cannot_be_meant_is_refused(wanted: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        compared([*trials("a", 2000), *trials("b", 1800)], **wanted)
