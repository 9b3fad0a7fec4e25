"""Several servers: keys are spread, and calls to a lost server are failures, no misses."""

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from cachemark.endpoints.capabilities import supported_wires
from cachemark.endpoints.clients import Client
from cachemark.endpoints.servers import parse_spec, running
from cachemark.model.protocol import Prepare, Ready, RunRequest
from tests.workers import worker_driver

pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)
MEMCACHED = "memcached:threads=1,memory=16"
MIX = ("--keys", "60", "--size", "30", "--mix", "get=1,mget=1", "--run", "10", "--ops", "200")
SPREADS = (
    "c/libmemcached",
    "perl/fast",
    "perl/memcached",
    "php/memcached",
    "python/pymemcache",
    "rust/memcache",
)


def _clients() -> list[Any]:
    """Each client over each protocol that it speaks."""
    return [
        pytest.param(worker_driver.known()[name], wire, id=f"{wire}-{name}")
        for name in SPREADS
        if (ready := worker_driver.claims(name)) is not None
        for wire in supported_wires(ready)
    ]


@pytest.mark.parametrize(("client", "wire"), _clients())
def test_the_keys_of_a_lost_server_are_no_misses(client: Client, wire: str, tmp_path: Path) -> None:
    tape = worker_driver.write_tape(tmp_path, *MIX)
    with (
        running(parse_spec(MEMCACHED)) as kept,
        running(parse_spec(MEMCACHED)) as lost,
        worker_driver.started(client) as (worker, _),
    ):
        servers = [*kept.addresses, *lost.addresses]
        setup = Prepare(servers=servers, wire=wire, tape=str(tape), timeout_ms=500)
        assert isinstance(worker_driver.ask(worker, setup), Ready)
        assert worker_driver.play(worker, RunRequest(phase="prefill")).operations["set"].ok == 60
        held = [int(server.stats()["curr_items"]) for server in (kept, lost)]
        assert sum(held) == 60
        assert min(held) > 5, held
        whole = worker_driver.play(worker, RunRequest(phase="measure", ops=200)).operations
        assert sum(told.hits for told in whole.values()) == sum(t.keys for t in whole.values())
        assert lost.pid is not None
        os.kill(lost.pid, signal.SIGKILL)
        rest = worker_driver.play(worker, RunRequest(phase="measure", ops=40)).operations
        assert sum(told.misses for told in rest.values()) == 0, rest
        assert sum(sum(told.errors.values()) for told in rest.values()) > 0
