"""How much memory a number of items needs: found by storing them all."""

from __future__ import annotations

import json

import pytest

from cachemark.checks.item_memory import drawn_shapes, fixed_shapes
from cachemark.model.errors import UsageError
from tests.cli.in_process import Inside


@pytest.mark.parametrize("server", ["embedded", "memcached"])
def test_the_memory_that_is_told_holds_all_items(inside: Inside, server: str) -> None:
    words = ("--items", "40k", "--size", "100..200", "--key-length", "16..24", "--json")
    told = inside("memory", server, *words)
    assert told.returncode == 0, told.stderr
    (need,) = json.loads(told.stdout)
    assert need["held"]
    assert need["items"] == 40_000
    # An item is its key, its value and some overhead.
    assert 120 < need["item_bytes"] < 600
    assert need["memory_mib"] * 2**20 > need["data_bytes"]
    # Not much more than what is needed.
    too_small_mib = need["too_small_mib"] or need["data_bytes"] // 2**20
    assert 0 < need["memory_mib"] - too_small_mib <= 1


def test_what_cannot_be_filled_says_why(inside: Inside) -> None:
    refused = inside("memory", "remote:127.0.0.1:1", "--items", "10")
    assert refused.returncode == 1
    assert "its memory cannot be set" in refused.stdout
    short = inside("memory", "embedded", "--items", "5M", "--key-length", "4")
    assert short.returncode == 2
    assert "--key-length" in short.stderr
    for words in (["--items", "many"], ["--items", "10", "--size", "4q"]):
        assert inside("memory", "embedded", *words).returncode == 2


def test_keys_differ_and_have_their_lengths() -> None:
    shapes = drawn_shapes(3000, "1k..4k", "8..40")
    keys = [shapes.key(number) for number in range(3000)]
    assert len(set(keys)) == 3000
    assert [len(key) for key in keys] == shapes.key_bytes
    assert {*map(shapes.value_size, range(3000))} <= {*range(1024, 4097)}
    assert shapes.data_bytes(3000) == sum(shapes.key_bytes) + sum(shapes.value_bytes)


def test_the_bytes_of_items_repeat_with_their_shapes() -> None:
    assert fixed_shapes(100).data_bytes(7) == 7 * 120
    with pytest.raises(UsageError, match="--size"):
        drawn_shapes(10, "4q", "20")
