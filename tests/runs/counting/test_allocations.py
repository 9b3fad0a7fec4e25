"""Allocations of clients in C and Rust: the loops have none, a library that copies values has."""

from pathlib import Path

import pytest

from cachemark.endpoints.clients import ClientSpec, registry
from cachemark.endpoints.servers import parse_spec, running
from cachemark.host import process
from cachemark.model.counts import Counts
from cachemark.model.experiment import Keys, Load, Timing, Values, Workload
from cachemark.runs.counting.player import CountingPlace, Work
from cachemark.runs.counting.processor import CountedPlay, Plays, copies_of, count_allocations
from cachemark.runs.tapes import TapeCache


def counted(name: str, server: str, folder: Path) -> Counts:
    engine = process.binary_path()
    client = registry(engine)[name]
    if client.missing() or not Path(client.counting_allocator).exists():
        pytest.skip("cachemark setup c rust")
    workload = Workload(
        name="get", mix={"get": 1}, keys=Keys(count=50, length="20"), values=Values(size="2000")
    )
    load = Load(name="one-caller")
    tape = TapeCache(engine, folder).get(workload, load, Timing(), 1)
    work = Work(kind="get", workload=workload, load=load, tape=tape)
    spec = ClientSpec(text=name, client=client)
    with running(parse_spec(server)) as running_server:
        place = CountingPlace(server_cpus="", worker_cpus="", folder=folder)
        return count_allocations(spec, [work], running_server, place)["get"]


@pytest.mark.parametrize("language", ["c", "rust"])
def test_a_loop_without_a_library_allocates_nothing(language: str, tmp_path: Path) -> None:
    counts = counted(f"{language}/null", "none", tmp_path)
    assert counts.allocations == pytest.approx(0, abs=0.5)
    # It tells its progress from time to time.
    assert counts.allocated_bytes == pytest.approx(0, abs=100)


@pytest.mark.parametrize("name", ["c/libmemcached", "rust/memcache", "rust/async-memcached"])
def test_each_get_allocates_its_value(name: str, tmp_path: Path) -> None:
    counts = counted(name, "embedded:io=blocking", tmp_path)
    assert (counts.allocations or 0) >= 1
    # All of the value, but for what the worker said during the shorter play.
    assert (counts.allocated_bytes or 0) >= 1900


def plays(value_bytes: int, short: int | None, long: int | None) -> Plays:
    """A play of one operation and one of two, with their allocated bytes."""
    (few, many) = [
        CountedPlay(
            ops=ops, user_ns=0, system_ns=0, waiting_ns=0, faults=0, switches=0, preemptions=0,
            waiting_threads=0, value_bytes=ops * value_bytes, allocated_bytes=allocated,
        )
        for ops, allocated in ((1, short), (2, long))
    ]  # fmt: skip
    return Plays(few, many)


def test_copies_are_bytes_for_each_byte_of_longer_values() -> None:
    assert copies_of(plays(100, 150, 300), plays(600, 1150, 2300)) == 2


@pytest.mark.parametrize(("short", "long"), [(None, 2300), (1150, None)])
def test_bytes_that_were_not_counted_are_no_copies(short: int | None, long: int | None) -> None:
    known, unknown = plays(100, 150, 300), plays(600, short, long)
    assert copies_of(known, unknown) is None
    assert copies_of(unknown, known) is None
    assert copies_of(known, None) is None
