"""The CPU time between two clients, shared out over causes, on invented counts."""

from __future__ import annotations

import msgspec
import pytest

from cachemark.analysis.why.estimate import CountEstimate
from cachemark.analysis.why.report import differences
from cachemark.analysis.why.shares import TimeShares
from cachemark.model.counts import CountedWork, UnitCosts
from tests.analysis.why.test_causes import PLAIN, counted

UNITS = [UnitCosts(sends=1.5, full_recvs=1.0, polls=each, switches=1.0) for each in (0.4, 0.5, 0.6)]


def time_between(base: CountedWork, other: CountedWork) -> TimeShares | None:
    (found,) = differences([base, other], UNITS)
    return found.time


def values(of: TimeShares | None) -> list[float | None]:
    assert of is not None
    parts = (of.more, of.own_code, of.explained, of.unexplained)
    return [None if each is None else each.value for each in parts]


def test_calls_explain_what_they_cost_and_no_more() -> None:
    found = time_between(counted("a"), counted("b", polls=2, user_us=3, system_us=4))
    assert values(found) == pytest.approx([7, 3, 1.0, 3.0])
    assert found is not None
    assert found.explained is not None
    assert found.explained.error > 0


def test_the_time_of_calls_has_the_error_of_their_number() -> None:
    noisy = counted("b", noise=0.1, polls=9, user_us=3, system_us=9)
    (found,) = differences([counted("a"), noisy], [UNITS[1]] * 3)
    (finding,) = found.findings
    assert finding.cost_us
    assert finding.more.error > 0
    assert finding.cost_us.error == pytest.approx(finding.more.error * (UNITS[1].polls or 0))


def test_the_client_with_more_time_is_named_first() -> None:
    found = time_between(counted("a", polls=2, system_us=4), counted("b"))
    assert found is not None
    assert (found.client, found.other) == ("a", "b")
    assert values(found) == pytest.approx([4, 0, 1.0, 3.0])


def test_no_sum_of_costs_exceeds_the_difference() -> None:
    more = {"sends": 2, "polls": 4, "user_us": 3}
    noisy = CountedWork(
        client="b",
        kind="get",
        repetitions=[
            counted("b", **more, system_us=kernel_us).repetitions[0] for kernel_us in (4, 4.5, 5)
        ],
    )
    (found,) = differences([counted("a"), noisy], UNITS)
    # By themselves, the calls cost 2 · 1.5 + 4 · 0.5 = 5 µs, which may be all of the 4.5 µs.
    assert values(found.time) == pytest.approx([7.5, 3, 4.5, 0])
    single = [each.cost_us.value for each in found.findings if each.cost_us]
    assert single == pytest.approx([3 * 0.9, 2 * 0.9])


def test_less_time_in_the_kernel_is_not_shared_out() -> None:
    found = time_between(counted("a"), counted("b", sends=2, user_us=9, system_us=-2))
    assert values(found) == [7, 9, None, None]
    found = time_between(counted("a"), counted("b", user_us=9, system_us=-2))
    assert values(found) == [7, 9, None, None]


def test_calls_of_the_faster_client_are_taken_away() -> None:
    found = time_between(counted("a", polls=2), counted("b", sends=2, user_us=9, system_us=4))
    assert values(found) == pytest.approx([13, 9, 3.0 - 1.0, 2.0])


def test_calls_that_cost_more_than_the_difference_are_not_shared() -> None:
    found = time_between(counted("a"), counted("b", sends=4, user_us=9, system_us=2))
    assert values(found) == [11, 9, None, None]


def test_calls_that_are_not_shared_have_no_cost() -> None:
    more = {"sends": 4, "user_us": 9, "system_us": 2}
    (found,) = differences([counted("a"), counted("b", polls=1, **more)], UNITS)
    # By themselves, the sends cost 6 µs, and the kernel takes 2 µs more.
    assert [(each.cause, each.cost_us) for each in found.findings] == [
        ("request in parts", None),
        ("poll before each read", None),
    ]


def test_a_second_request_costs_only_calls_that_were_counted() -> None:
    more = counted("b", turns=1, sends=1, recvs=1, user_us=1, system_us=5)
    found = time_between(counted("a"), more)
    # No poll and no wait was counted, though a second request may have both.
    assert values(found) == pytest.approx([6, 1, 1.5 + 1.0, 2.5])


def test_a_call_without_a_known_cost_is_unexplained() -> None:
    found = time_between(counted("a"), counted("b", timers=5, system_us=4))
    assert values(found) == pytest.approx([4, 0, 0, 4])


def test_time_that_does_not_clearly_differ_is_not_shared_out() -> None:
    noisy = CountedWork(
        client="b",
        kind="get",
        repetitions=[counted("b", user_us=more).repetitions[0] for more in (-5, 0, 9)],
    )
    assert time_between(counted("a"), noisy) is None


def test_time_that_was_not_counted_is_not_shared_out() -> None:
    counts = msgspec.structs.replace(PLAIN, user_us=None)
    assert counts.cpu_us is None
    without = CountedWork(client="b", kind="get", repetitions=[counts] * 3)
    assert time_between(counted("a"), without) is None


def test_an_estimate_of_equal_values_has_no_error() -> None:
    found = time_between(counted("a"), counted("b", user_us=2))
    assert found is not None
    assert found.more == CountEstimate(value=2, error=0)
