"""A cache in the process reports what it takes; a client of a server has nothing to report."""

from pathlib import Path

import pytest

from cachemark.endpoints.clients import registry
from cachemark.endpoints.servers import parse_spec, running
from cachemark.host import process
from cachemark.model.merging import merge
from cachemark.model.protocol import Done, Ready, RunRequest
from tests.workers import worker_driver

CLIENTS = registry(process.binary_path())
KEYS, VALUE_BYTES = 500, 1000
DATA_BYTES = KEYS * VALUE_BYTES


def stored(client: str, folder: Path, servers: list[str], wire: str) -> Done:
    """The result of storing each key once."""
    if missing := CLIENTS[client].missing():
        pytest.skip(f"{missing}: {CLIENTS[client].setup}")
    shape = ("--keys", str(KEYS), "--size", str(VALUE_BYTES), "--distribution", "sequential")
    once = ("--mix", "set=1", "--ops", str(KEYS), "--prefill", "0")
    tape = worker_driver.write_tape(folder, *shape, *once)
    with worker_driver.started(CLIENTS[client]) as (worker, _):
        setup = worker_driver.patient(servers=servers, wire=wire, tape=str(tape))
        assert isinstance(worker_driver.ask(worker, setup), Ready)
        return worker_driver.play(worker, RunRequest(phase="measure", ops=KEYS))


@pytest.mark.parametrize("client", ["native/store", "native/shm", "php/apcu", "php/shared-store"])
def test_a_cache_takes_its_items_and_its_table(client: str, tmp_path: Path) -> None:
    done = stored(client, tmp_path, [], "none")
    assert done.operations["set"].ok == KEYS
    assert done.store_bytes is not None
    # The table and the headers: APCu has room for 4096 slots and more in each segment.
    assert DATA_BYTES < done.store_bytes < 4 * DATA_BYTES


def test_a_client_of_a_server_has_none(tmp_path: Path) -> None:
    with running(parse_spec("embedded:memory=16m")) as server:
        done = stored("native", tmp_path, server.addresses, "text")
    assert done.store_bytes is None


def test_a_cache_that_workers_share_counts_once(tmp_path: Path) -> None:
    done = stored("native/store", tmp_path, [], "none")
    other = Done(phase="measure", elapsed_ns=1, send_elapsed_ns=1, operations={}, store_bytes=7)
    assert merge([other, done]).store_bytes == done.store_bytes
