"""A worker that is asked tells the allocations and collections that its language counts."""

from pathlib import Path

import msgspec
import pytest

from cachemark.endpoints.clients import registry
from cachemark.endpoints.servers import parse_spec, running
from cachemark.host import process
from cachemark.model.protocol import Ready, RunRequest
from cachemark.model.protocol_results import HeapWork
from tests.workers import worker_driver

CLIENTS = registry(process.binary_path())
COLLECTIONS = {"collections", "collection_ns"}
PRICE = {"priced", "priced_ns"}
# The figures that a runtime counts.
COUNTED = {
    "go/gomemcache": {"allocations", "allocated_bytes", *COLLECTIONS, *PRICE},
    "java/spymemcached": {"allocated_bytes", *COLLECTIONS},
    "ruby/dalli": {"allocations", *COLLECTIONS, *PRICE},
    "node/memjs": COLLECTIONS,
    "python/pymemcache": {"collections"},
    "php/memcached": set[str](),
    "perl/memcached": set[str](),
    "c/libmemcached": set[str](),
    "rust/memcache": set[str](),
    "native": set[str](),
}
FEW, MANY = 500, 10_000


def heaps(client: str, folder: Path, *runs: RunRequest) -> list[HeapWork | None]:
    """The heap that the worker of a client tells after each of these runs of gets."""
    if missing := CLIENTS[client].missing():
        pytest.skip(f"{missing}: {CLIENTS[client].setup}")
    shape = ("--keys", "50", "--size", "100", "--mix", "get=1", "--ops", "1000")
    tape = worker_driver.write_tape(folder, *shape)
    with (
        running(parse_spec("embedded:memory=16m")) as server,
        worker_driver.started(CLIENTS[client]) as (worker, ready),
    ):
        wire = ready.capabilities[0]
        servers = [] if wire == "none" else server.addresses
        setup = worker_driver.patient(servers=servers, wire=wire, tape=str(tape))
        assert isinstance(worker_driver.ask(worker, setup), Ready)
        worker_driver.play(worker, RunRequest(phase="prefill"))
        return [worker_driver.play(worker, run).heap for run in runs]


def asked(ops: int) -> RunRequest:
    return RunRequest(phase="measure", ops=ops, heap=True)


@pytest.mark.parametrize("client", COUNTED)
def test_a_worker_reports_what_its_runtime_counts(client: str, tmp_path: Path) -> None:
    not_asked = RunRequest(phase="measure", ops=FEW)
    nothing, heap = heaps(client, tmp_path, not_asked, asked(FEW))
    assert nothing is None
    figures = msgspec.structs.asdict(heap or HeapWork())
    assert {name for name, value in figures.items() if value is not None} == COUNTED[client]


@pytest.mark.parametrize("client", ["go/gomemcache", "java/spymemcached", "ruby/dalli"])
def test_allocations_grow_with_operations(client: str, tmp_path: Path) -> None:
    few, many = heaps(client, tmp_path, asked(FEW), asked(MANY))
    assert few
    assert many
    figure = "allocated_bytes" if few.allocations is None else "allocations"
    assert getattr(many, figure) - getattr(few, figure) > MANY - FEW


@pytest.mark.parametrize("client", ["go/gomemcache", "ruby/dalli"])
def test_priced_allocations_take_cpu_time(client: str, tmp_path: Path) -> None:
    (heap,) = heaps(client, tmp_path, asked(FEW))
    assert heap
    assert (heap.priced_ns or 0) > 0


@pytest.mark.parametrize("client", ["node/memjs", "ruby/dalli"])
def test_collections_take_time(client: str, tmp_path: Path) -> None:
    (heap,) = heaps(client, tmp_path, asked(MANY))
    assert heap
    assert (heap.collections or 0) > 0
    assert (heap.collection_ns or 0) > 0


def test_a_loop_without_a_library_allocates_nothing_per_operation(tmp_path: Path) -> None:
    few, many = heaps("go/null", tmp_path, asked(FEW), asked(MANY))
    assert few
    assert many
    assert (many.allocations or 0) - (few.allocations or 0) < (MANY - FEW) / 10
