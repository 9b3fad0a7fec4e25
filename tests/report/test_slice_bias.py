"""The sentence about slices in which many callers seem too fast."""

import msgspec
import pytest

from cachemark.model.outcome import Outcome
from cachemark.report.rounds import bias_texts, turns_text
from tests.builders import rounds as made


def played(rate: float, callers: int, length_ms: int = 30) -> list[Outcome]:
    """Two sittings of a client with these callers; 10 % of a slice is its lead-in."""
    found: list[Outcome] = []
    for outcome in made.run({"python/pymemcache": rate}, 2, deviation=0.0):
        assert outcome.rounds
        rounds = msgspec.structs.replace(
            outcome.rounds, length_us=1000 * length_ms, lead_in_us=100 * length_ms
        )
        load = msgspec.structs.replace(outcome.load, threads=callers)
        found.append(msgspec.structs.replace(outcome, rounds=rounds, load=load))
    return found


def test_short_slices_of_many_callers_show_bias_and_longer_length() -> None:
    (text,) = bias_texts(played(10_000, 32))
    # An operation takes 3.2 ms; 27 ms are counted.
    assert "32 callers" in text
    assert "up to 14.8 % too high" in text
    assert "--set rounds.slice_ms=450" in text


def test_slices_of_the_length_that_is_named_are_long_enough() -> None:
    assert bias_texts(played(10_000, 32, length_ms=450)) == []


def test_operations_too_long_for_any_slice_are_sent_to_trials() -> None:
    (text,) = bias_texts(played(100, 50))
    assert "design=trials" in text


def test_slices_that_have_grown_are_told_in_the_heading() -> None:
    short, grown = played(10_000, 32), played(10_000, 32, length_ms=450)
    assert turns_text(short, 30) == "30 ms"
    assert turns_text(grown, 30) == "450 ms (as many callers need)"
    assert turns_text([*short, *grown], 30) == "30 to 450 ms (as many callers need)"


def test_counted_operations_slower_than_in_the_warm_up_are_named() -> None:
    def declared(rate: float) -> list[Outcome]:
        return [
            msgspec.structs.replace(of, rounds=msgspec.structs.replace(of.rounds, operation_ns=1))
            for of in played(rate, 32, length_ms=450)
            if of.rounds
        ]

    assert bias_texts(declared(6_000)) == []
    (text,) = bias_texts(declared(4_000))
    assert "up to 2.5 % too high" in text


@pytest.mark.parametrize(("rate", "callers"), [(10_000, 1), (200_000, 32), (50, 1)])
def test_one_caller_and_short_operations_have_no_bias(rate: float, callers: int) -> None:
    assert bias_texts(played(rate, callers)) == []
