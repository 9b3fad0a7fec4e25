"""A cell goes on until its client is back, as far as progress and the server's counters show."""

from __future__ import annotations

from cachemark.runs.resilience.window import Look, healthy_since_ns, may_end

_S = 1_000_000_000


def looks(*steps: tuple[int, int, int]) -> list[Look]:
    """A look each second: calls, errors and executed calls since the one before."""
    made = [Look(0, 0, 0, 0)]
    for ops, errors, answered in steps:
        last = made[-1]
        made.append(
            Look(last.at_ns + _S, last.ops + ops, last.errors + errors, last.answered + answered)
        )
    return made


GOOD = (400, 0, 400)


def test_it_ends_when_the_client_has_been_well_for_some_seconds() -> None:
    assert not may_end(looks(GOOD, GOOD), 0, after_ms=1000, share=0.9)
    assert may_end(looks(GOOD, GOOD, GOOD), 0, after_ms=1000, share=0.9)
    assert not may_end(looks(GOOD, GOOD, GOOD), 0, after_ms=5000, share=0.9)


def test_an_error_begins_the_count_again() -> None:
    seen = looks(GOOD, GOOD, (399, 1, 400), GOOD)
    assert healthy_since_ns(seen, 0.9) == 3 * _S
    assert healthy_since_ns(looks(GOOD, (399, 1, 400)), 0.9) is None


def test_misses_that_reach_no_server_are_not_well() -> None:
    assert healthy_since_ns(looks((400, 0, 0)), 0.9) is None
    assert healthy_since_ns(looks((400, 0, 120)), 0.1) == 0, "one of three servers"


def test_a_client_that_hardly_plays_is_not_well() -> None:
    assert healthy_since_ns(looks((20, 0, 20)), 0.9) is None
    assert healthy_since_ns([], 0.9) is None
    assert not may_end(looks(), 0, after_ms=0, share=0.9)
