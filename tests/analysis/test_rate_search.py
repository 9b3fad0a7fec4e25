"""The search for the highest rate: what a trial shows, and which rate comes next."""

from collections.abc import Callable

import msgspec
import pytest

from cachemark.analysis.rate_search import (
    Play,
    Search,
    bounds,
    judge_play,
    searches,
    wants_closed,
)
from cachemark.model.outcome import Cell, HostNoise
from cachemark.model.search_steps import parse_objective
from tests.builders.search_outcomes import at_rate, closed, search_experiment

CELL = Cell(client="a", server="embedded", workload="mixed", load="open")
P99 = parse_objective("p99<1ms", "search")
SLOW, FAST = 2_000_000, 200_000


def played(most: float, play: Callable[[float], Play]) -> Search:
    """A whole search, whose trials are made by `play`."""
    search = Search(cell=CELL, block=0, closed=[Play(rate=0, answered_per_s=most)])
    while (rate := bounds(search).next_rate) is not None:
        search = msgspec.structs.replace(search, plays=[*search.plays, play(rate)])
        assert len(search.plays) < 32
    return search


@pytest.mark.parametrize("limit", [2_000.0, 37_000.0, 50_000.0, 96_500.0])
def test_the_search_converges_to_the_limit(limit: float) -> None:
    found = played(1e5, lambda rate: Play(rate=rate, misses_by="p99" if rate > limit else ""))
    ends = bounds(found)
    assert ends.best <= limit <= ends.above
    assert ends.above - ends.best <= 3_001
    # Six rates; each that misses is played twice, and that above the best one once more.
    assert len(found.plays) <= 13


def test_the_best_rate_has_met_the_objective_twice() -> None:
    found = played(1e5, lambda rate: Play(rate=rate, misses_by="p99" if rate > 37_000 else ""))
    best = bounds(found).best
    assert sum(play.rate == best for play in found.plays) == 2


def test_a_rate_that_met_it_by_chance_is_not_best() -> None:
    seen: set[float] = set()

    def lucky_once(rate: float) -> Play:
        missed = rate > 37_000 or (rate > 34_000 and rate in seen)
        seen.add(rate)
        return Play(rate=rate, misses_by="p99" if missed else "")

    assert bounds(played(1e5, lucky_once)).best <= 34_000


@pytest.mark.parametrize("spoiled", range(12))
def test_one_trial_that_missed_by_chance_changes_no_answer(spoiled: int) -> None:
    """Such as a p99 that a pause tripled, and that no rule recognised."""
    count = 0

    def play(rate: float) -> Play:
        nonlocal count
        missed = rate > 37_000 or count == spoiled
        count += 1
        return Play(rate=rate, misses_by="p99" if missed else "")

    ends = bounds(played(1e5, play))
    assert ends.best <= 37_000 <= ends.above
    assert ends.above - ends.best <= 3_001


@pytest.mark.parametrize("spoiled", [(0, 1), (2, 3), (1, 2)])
def test_two_trials_that_missed_by_chance_change_no_answer(spoiled: tuple[int, int]) -> None:
    """The rate above the best one is played until three of five plays agree."""
    count = 0

    def play(rate: float) -> Play:
        nonlocal count
        missed = rate > 37_000 or count in spoiled
        count += 1
        return Play(rate=rate, misses_by="p99" if missed else "")

    ends = bounds(played(1e5, play))
    assert ends.best <= 37_000 <= ends.above


def test_a_spoiled_trial_is_repeated_once_before_lower_rates() -> None:
    found = played(1e5, lambda rate: Play(rate=rate, spoiled_by="generator" if rate > 1e4 else ""))
    assert [play.rate for play in found.plays][:4] == [50_000, 50_000, 25_000, 25_000]
    assert 0 < bounds(found).best <= 1e4


def test_if_no_rate_meets_the_objective_none_is_found() -> None:
    found = played(1e5, lambda rate: Play(rate=rate, misses_by="p99"))
    assert bounds(found).best == 0


def test_without_a_closed_loop_there_is_no_search() -> None:
    failed = Play(rate=0, spoiled_by="failed", why="it died")
    once = Search(cell=CELL, block=0, closed=[failed])
    assert wants_closed(once)
    twice = msgspec.structs.replace(once, closed=[failed, failed])
    assert not wants_closed(twice)
    assert bounds(twice).next_rate is None
    lacking = Play(rate=0, spoiled_by="unsupported", why="no open loops")
    assert not wants_closed(msgspec.structs.replace(once, closed=[lacking]))


def test_what_a_trial_shows() -> None:
    assert judge_play(at_rate("a", 1000, FAST), P99, "auto").meets
    slow = judge_play(at_rate("a", 1000, SLOW), P99, "auto")
    assert slow.misses_by == "p99"
    assert not slow.spoiled_by
    over = judge_play(at_rate("a", 1000, FAST, verdict="OVERLOAD"), P99, "auto")
    assert over.misses_by.startswith("OVERLOAD")
    few = judge_play(at_rate("a", 100, FAST), P99, "auto")
    assert few.spoiled_by == "few"


def test_a_late_client_is_no_answer_about_the_server() -> None:
    late = judge_play(at_rate("a", 1000, SLOW, late_ns=1_500_000), P99, "auto")
    assert late.spoiled_by == "generator"
    whole = at_rate("a", 1000, SLOW, verdict="INVALID", rule="send-lag")
    assert judge_play(whole, P99, "auto").spoiled_by == "generator"
    other = at_rate("a", 1000, FAST, verdict="INVALID", rule="commands")
    assert judge_play(other, P99, "auto").spoiled_by == "invalid"


def test_noise_spoils_only_what_it_may_have_made_slow() -> None:
    noise = HostNoise(cpus=1, steal_percent=60.0, window_ns=10**9)
    disturbed = msgspec.structs.replace(at_rate("a", 1000, SLOW, share=0.05), noise=noise)
    assert judge_play(disturbed, P99, "auto").spoiled_by == "noise"
    assert judge_play(disturbed, P99, "note").misses_by == "p99"
    met = msgspec.structs.replace(at_rate("a", 1000, FAST), noise=noise)
    assert judge_play(met, P99, "auto").meets


def test_noise_that_moved_every_percentile_leaves_a_met_objective() -> None:
    noise = HostNoise(cpus=1, steal_percent=60.0, window_ns=10**9)
    for rule in ("steal", "send-lag"):
        slow = at_rate("a", 1000, SLOW, share=0.05, verdict="INVALID", rule=rule)
        slow = msgspec.structs.replace(slow, noise=noise)
        assert judge_play(slow, P99, "auto").spoiled_by == "noise"
    met = at_rate("a", 1000, FAST, verdict="INVALID", rule="steal")
    assert judge_play(met, P99, "auto").spoiled_by == "invalid"
    assert judge_play(msgspec.structs.replace(met, noise=noise), P99, "auto").meets


def test_the_trials_of_a_run_are_sorted_into_searches() -> None:
    outcomes = [
        closed("a", 2000), closed("b", 3000), at_rate("a", 1000, FAST), at_rate("b", 1500, SLOW),
        closed("a", 2100, block=1),
    ]  # fmt: skip
    numbered = [
        msgspec.structs.replace(o, trial=msgspec.structs.replace(o.trial, index=n))
        for n, o in enumerate(outcomes)
    ]
    found = searches(numbered, search_experiment(blocks=2))
    assert [(one.cell.client, one.block, len(one.plays)) for one in found] == [
        ("a", 0, 1), ("b", 0, 1), ("a", 1, 0),
    ]  # fmt: skip
    assert all(one.cell.load == "open" for one in found)
    assert found[0].most == 2000
