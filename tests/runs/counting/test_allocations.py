"""Allocations of clients in C and Rust: the loops have none, a library that copies values has."""

from pathlib import Path

import pytest

from cachemark.endpoints.clients import ClientSpec, registry
from cachemark.endpoints.servers import parse_spec, running
from cachemark.host import process
from cachemark.model.counts import Counts
from cachemark.model.experiment import Keys, Load, Timing, Values, Workload
from cachemark.runs.counting.player import CountingPlace, Work
from cachemark.runs.counting.processor import count_allocations
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
