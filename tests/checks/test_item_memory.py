"""The memory of an item, and of a server for many: also of servers that do not tell it."""

import json
from pathlib import Path

import pytest

from cachemark.checks.item_memory import Fill, batch, drawn_shapes, fill, filled, fixed_shapes
from cachemark.endpoints.probe.dialogue import ProbedServer
from cachemark.endpoints.servers import missing, parse_spec, running
from cachemark.model.errors import TrialError, UsageError
from cachemark.model.footprint import Footprint, mean
from tests.cli.in_process import Inside
from tests.endpoints.probe.deviant import deviant

LIMIT = 16 << 20


@pytest.mark.parametrize("server", ["memcached:memory=16", "embedded:memory=16m"])
@pytest.mark.parametrize("value_bytes", [1000, 10_000])
def test_a_server_is_filled_until_it_evicts(server: str, value_bytes: int) -> None:
    spec = parse_spec(server)
    if absent := missing(spec):
        pytest.skip(absent.reason)
    found = fill(spec, value_bytes)
    assert (found.reason, found.ended, found.limit_bytes) == ("", "it evicted", LIMIT)
    of = found.footprint
    assert of is not None
    assert of.user_bytes == found.items * (20 + value_bytes)
    # More than half of the limit is what users stored, and no more than all of it.
    assert 0.5 * LIMIT < of.user_bytes <= 1.01 * LIMIT
    assert of.rss_bytes is not None
    assert of.growth_bytes is not None
    assert of.rss_bytes > of.growth_bytes > of.user_bytes * 0.9


def test_only_one_server_of_our_own_is_filled() -> None:
    with running(parse_spec("embedded:memory=16m")) as server:
        found = fill(parse_spec(f"remote:{server.addresses[0]}"), 100)
        assert server.stats()["cmd_set"] == "0"
    assert "only a single server that cachemark starts" in found.reason
    assert found.footprint is None
    assert fill(parse_spec("cluster:2:embedded"), 100).footprint is None


def test_a_server_without_counters_is_full_when_old_keys_vanish() -> None:
    with deviant(limit_items=1000) as address, running(parse_spec(f"remote:{address}")) as server:
        found = filled(server, "deviant", 1000)
    assert found.ended == "the oldest items were gone"
    assert found.items == 1000
    assert found.footprint is not None
    assert (found.footprint.reported_bytes, found.footprint.rss_bytes) == (None, None)


@pytest.mark.parametrize(
    ("way", "value_bytes", "reason"),
    [
        ("", 20_000, "it took 1 MiB without an eviction"),
        ("no_set", 1000, "nothing can be stored: answered ERROR"),
    ],
)
def test_a_server_that_cannot_be_filled_has_no_figures(
    way: str, value_bytes: int, reason: str
) -> None:
    with (
        deviant(*filter(None, [way]), limit_items=100) as address,
        running(parse_spec(f"remote:{address}")) as server,
        pytest.raises(TrialError, match=reason),
    ):
        filled(server, "deviant", value_bytes)


def test_a_store_that_is_refused_ends_the_fill() -> None:
    with (
        deviant("small_values") as address,
        running(parse_spec(f"remote:{address}")) as server,
    ):
        found = filled(server, "deviant", 300_000)
    assert found.ended == "a store was answered SERVER_ERROR object too large for cache"
    assert found.items == 0


def test_a_server_that_stalls_is_filled_one_by_one() -> None:
    with deviant() as good, deviant("stalls") as stalling:
        assert batch(ProbedServer(good), 1000) > 100
        assert batch(ProbedServer(stalling), 1000) == 1


def test_what_is_not_told_is_no_figure() -> None:
    told = Footprint(user_bytes=50, reported_bytes=100, rss_bytes=200, rss_empty_bytes=100)
    untold = Footprint(user_bytes=150)
    assert (told.growth_bytes, told.of(told.reported_bytes)) == (100, 0.5)
    assert (untold.growth_bytes, untold.of(untold.rss_bytes)) == (None, None)
    assert mean([told, untold]) == Footprint(user_bytes=100)
    shrunk = Footprint(user_bytes=1, rss_bytes=10, rss_empty_bytes=20)
    assert shrunk.growth_bytes is None


def test_the_verb(inside: Inside, tmp_path: Path) -> None:
    del tmp_path
    ended = inside("memory", "embedded:memory=1m", "--sizes", "1000", "--json")
    assert ended.returncode == 0, ended.stderr
    (found,) = json.loads(ended.stdout)
    assert Fill(**{**found, "footprint": Footprint(**found["footprint"])}).items > 100
    ended = inside("memory", "embedded:memory=1m", "memcached:binary=/nowhere", "--sizes", "1000")
    assert ended.returncode == 1
    assert "1,000 B" in ended.stdout
    assert "memcached:binary=/nowhere, 1,000 B: /nowhere is not on this machine" in ended.stdout
    assert inside("memory", "embedded", "--sizes", "0").returncode == 2


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


def test_a_measurement_is_printed_where_its_file_fails(inside: Inside) -> None:
    words = ("memory", "embedded:memory=1m", "--sizes", "1000")
    ended = inside(*words, "--format", "csv", "--out", "/proc/self/nowhere/x.csv")
    assert ended.returncode == 2
    assert "cannot be written" in ended.stderr
    assert "1,000 B" in ended.stdout


def test_two_forms_are_refused_before_any_server_starts(inside: Inside) -> None:
    ended = inside("memory", "embedded:memory=1m", "--json", "--format", "csv")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--json and --format csv" in ended.stderr
