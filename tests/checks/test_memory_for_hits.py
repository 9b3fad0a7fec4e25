"""The least memory for a hit ratio, found by fetches that fill the server as they miss."""

import json
from typing import Any

import numpy as np
import pytest

from cachemark.checks import memory_for_hits
from cachemark.checks.memory_for_hits import is_constant
from tests.cli.in_process import Inside


@pytest.fixture(autouse=True)
def _short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many fetches as there are keys: ratios within 0.02 need no more."""
    monkeypatch.setattr(memory_for_hits, "_MIN_WINDOW", 1)


_ITEMS = 20_000
_WORDS = ("--items", str(_ITEMS), "--size", "500", "--json")


def _answer(inside: Inside, server: str, distribution: str) -> Any:
    told = inside("memory", server, *_WORDS, "--distribution", distribution, "--hit-ratio", "0.7")
    assert told.returncode == 0, told.stderr
    (answer,) = json.loads(told.stdout)
    return answer


def _check_uniform(answer: Any) -> None:
    """With uniform keys, every policy finds the part of the keys that it holds."""
    reached, missed = answer["reached"], answer["missed"]
    assert reached["ratio"] >= 0.7 > missed["ratio"]
    assert reached["memory_mib"] > missed["memory_mib"]
    assert reached["ratio"] == pytest.approx(reached["held_items"] / _ITEMS, abs=0.01)
    assert reached["memory_mib"] < answer["all_items_mib"]


def _least_hits(held: int) -> float:
    """The hit ratio of a cache that evicts at random, with `held` of the keys of zipf:1.

    A key that is asked for with probability p is held for the part pt / (1 + pt) of the time.
    """
    ranks = np.arange(1, _ITEMS + 1)
    popularity = 1 / ranks / (1 / ranks).sum()
    low, high, parts = 0.0, 1e12, popularity
    for _ in range(100):
        time = (low + high) / 2
        parts = popularity * time / (1 + popularity * time)
        low, high = (time, high) if parts.sum() < held else (low, time)
    return float((popularity * parts).sum())


def test_popular_keys_stay_popular_in_all_windows(inside: Inside) -> None:
    """Also keys of other lengths, which are the same in each window."""
    told = inside("memory", "embedded", *_WORDS, "--key-length", "16..40", "--hit-ratio", "0.8")
    assert told.returncode == 0, told.stderr
    for of in (json.loads(told.stdout)[0][name] for name in ("reached", "missed")):
        assert of["ratio"] > _least_hits(of["held_items"]) - 0.01


def test_uniform_keys_need_memory_for_their_part(inside: Inside) -> None:
    _check_uniform(_answer(inside, "embedded", "uniform"))


@pytest.mark.slow("it plays two tables")
def test_popular_keys_need_less_memory_than_uniform_ones(inside: Inside) -> None:
    uniform = _answer(inside, "memcached", "uniform")
    _check_uniform(uniform)
    popular = _answer(inside, "memcached", "zipf:1")
    assert popular["reached"]["memory_mib"] < uniform["reached"]["memory_mib"]


def test_the_table_names_the_memory_that_was_too_small(inside: Inside) -> None:
    told = inside("memory", "embedded", "--items", "8k", "--size", "500", "--hit-ratio", "0.8")
    assert told.returncode == 0, told.stderr
    assert "drawn as zipf:1; a get that misses stores its key" in told.stdout
    assert "memory=" in told.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--hit-ratio", "0.9"], "--items"),
        (["--hit-ratio", "99", "--items", "10k"], "0.99"),
        (["--hit-ratio", "0.9", "--items", "10k", "--distribution", "zapf"], "zapf"),
    ],
)
def test_bad_input_is_one_error(inside: Inside, words: list[str], said: str) -> None:
    told = inside("memory", "memcached", *words)
    assert told.returncode == 2
    assert said in told.stderr
    assert "Traceback" not in told.stderr


def test_a_server_whose_memory_cannot_be_set_says_so(inside: Inside) -> None:
    told = inside("memory", "remote:127.0.0.1:1", "--items", "10k", "--hit-ratio", "0.9")
    assert told.returncode == 1
    assert "its memory cannot be set" in told.stdout


def test_a_ratio_that_still_falls_is_not_constant() -> None:
    assert not is_constant([93_600, 93_500, 93_500, 93_400, 93_100], 100_000)
    assert not is_constant([93_600, 93_500, 93_500, 93_400, 93_100, 92_900], 100_000)
    assert is_constant([93_600, 93_500, 93_560, 93_540, 93_600, 93_480], 100_000)
