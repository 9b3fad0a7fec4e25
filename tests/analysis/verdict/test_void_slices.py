"""Slices that hosts may not have started together, and what they do to an arm's figures."""

import msgspec
import pytest

from cachemark.analysis.rounds.pairs import read_sittings
from cachemark.analysis.statistics import window_rate
from cachemark.analysis.verdict.void_slices import VOID_SLICES, judge_void, moved_by_others_ns
from cachemark.model import histogram
from cachemark.model.outcome import Cell, Withheld
from cachemark.model.protocol import Done
from cachemark.model.protocol_results import Operation
from cachemark.model.rounds import Rounds, Slices
from cachemark.runs.agents.clock import Offset, StartBounds, skew_ns, start_bounds
from tests.builders.histograms import from_values
from tests.builders.rounds import outcome, sitting

US, MS = 1_000, 1_000_000


@pytest.mark.parametrize(
    ("late_ns", "after", "bounds"),
    [
        (0, Offset(500, 10), (-20, 20)),
        (300, Offset(500, 10), (280, 320)),
        # A clock that gained 100 since the start was planned says so too early, at most by that.
        (0, Offset(600, 10), (-110, 20)),
        (0, Offset(400, 10), (-20, 110)),
        # The second comparison is worse: it does not make the first one worse than itself.
        (0, Offset(500, 900), (-900, 900)),
    ],
)
def test_the_start_of_a_host(late_ns: int, after: Offset, bounds: tuple[int, int]) -> None:
    assert start_bounds(late_ns, Offset(500, 20), after) == bounds


@pytest.mark.parametrize(
    ("bounds", "skew"),
    [
        ([], 0),
        ([(-9, 9)], 0),
        ([(-10, 10), (-20, 20)], 30),
        ([(0, 5), (100, 130), (50, 60)], 130),
        # The host that is least sure of its start is not compared with itself.
        ([(-100, 100), (-1, 1), (0, 2)], 102),
        ([(10, 20), (10, 20)], 10),
    ],
)
def test_the_skew_is_that_of_the_two_hosts_furthest_apart(
    bounds: list[tuple[int, int]], skew: int
) -> None:
    hosts = [StartBounds(*one) for one in bounds]
    assert skew_ns(hosts) == skew
    assert skew_ns(hosts[::-1]) == skew
    pairs = [(a, b) for a in hosts for b in hosts if a is not b]
    assert skew == max((a.latest_ns - b.earliest_ns for a, b in pairs), default=0)


def window(times_ns: list[int]) -> Done:
    """Gets that took these times."""
    blob = histogram.encode(from_values(times_ns))
    gets = Operation(attempts=len(times_ns), ok=len(times_ns), response=blob)
    return Done(phase="measure", elapsed_ns=MS, send_elapsed_ns=MS, operations={"get": gets})


def rounds(counted: int, void: int, void_ops: int) -> Rounds:
    """An arm with some slices."""
    slices = Slices(ops=[1] * counted)
    return Rounds(
        arms=["a"],
        arm=0,
        length_us=1,
        lead_in_us=0,
        slices=slices,
        void_slices=void,
        void_ops=void_ops,
    )


EVEN = [100 * US + number for number in range(5000)]
TAILED = EVEN[:-60] + [5 * MS] * 60


@pytest.mark.parametrize(
    ("times_ns", "arm", "weight", "withheld"),
    [
        (EVEN, rounds(100, 0, 0), None, []),
        (EVEN, rounds(99, 1, 50), "note", []),
        # All of the slow operations may have been in void slices, or all of the fast ones.
        (TAILED, rounds(99, 1, 50), "withheld", [99.0]),
        (TAILED, rounds(99, 1, 5), "note", []),
        (EVEN, rounds(89, 11, 50), "INVALID", []),
        (EVEN, rounds(90, 10, 50), "note", []),
        (EVEN, rounds(0, 7, 5000), "INVALID", []),
    ],
)
def test_what_void_slices_do_to_an_arm(
    times_ns: list[int], arm: Rounds, weight: str | None, withheld: list[float]
) -> None:
    judged = judge_void(window(times_ns), arm)
    assert [found.weight for found in judged.findings] == ([weight] if weight else [])
    assert [each.percent for each in judged.withheld if each.percent == 99.0] == withheld
    for each in judged.withheld:
        assert f"p{each.percent:g}" in judged.findings[0].text


def test_a_percentile_of_any_part_is_within_the_bound() -> None:
    times = sorted([*range(100 * US, 200 * US, 100), *range(MS, 2 * MS, 10_000)])
    whole, cut = from_values(times), 30
    for percent in (50.0, 90.0, 99.0):
        by_ns = moved_by_others_ns(whole, percent, cut)
        for start in range(0, len(times) - cut + 1, 10):
            part = from_values(times[:start] + times[start + cut :])
            moved_ns = abs(part.percentile(percent) - whole.percentile(percent))
            assert moved_ns <= by_ns, (percent, start)


def test_the_rate_is_that_of_the_other_slices() -> None:
    cell = Cell(client="a", server="s", workload="w", load="l")
    (slices,) = sitting(1, 2, lambda _arm, _before, _number: 100_000.0)
    whole = outcome(cell, 0, [cell], slices, [100 * US] * sum(slices.ops))
    assert whole.rounds is not None
    void = msgspec.structs.replace(whole.rounds, void_slices=1, slices=sitting_of_half(slices))
    rate = window_rate(msgspec.structs.replace(whole, rounds=void))
    assert rate == pytest.approx(sum(slices.ops) / sum(slices.elapsed_ns) * 1e9 / 2)


def sitting_of_half(slices: Slices) -> Slices:
    """The same slices with half of the operations."""
    return msgspec.structs.replace(slices, ops=[ops // 2 for ops in slices.ops])


def test_a_percentile_that_void_slices_may_move_is_not_compared() -> None:
    cell = Cell(client="a", server="s", workload="w", load="l")
    (slices,) = sitting(1, 2, lambda _arm, _before, _number: 100_000.0)
    whole = outcome(cell, 0, [cell], slices, [100 * US] * sum(slices.ops))
    moved = Withheld(kind="", percent=99.0, rule=VOID_SLICES, ns=1, moved_ns=1, limit_ns=0)
    for withheld, names in (([], {"p50", "p99"}), ([moved], {"p50"})):
        arms = read_sittings([msgspec.structs.replace(whole, withheld=withheld)], ("p50", "p99"))
        ((figures,),) = (list(of.values()) for of in arms.values())
        assert {"p50", "p99"} - {f"p{percent:g}" for percent in figures.lacks} == names
