"""The Node worker's own edges: callers on one event loop, what libraries forget, its histograms."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from cachemark.endpoints.clients import registry
from cachemark.endpoints.servers import parse_spec, running
from cachemark.host import process
from cachemark.model import histogram
from cachemark.model.protocol import Failure, Ready, RunRequest, Stop, Unsupported
from tests.conftest import ROOT
from tests.workers import worker_driver
from tests.workers.worker_driver import Workers, workers

__all__ = ["workers"]

CLIENTS = registry(process.binary_path())
MEMJS = CLIENTS["node/memjs"]
FOLDER = ROOT / "workers" / "node"
pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="apt-get install nodejs npm"),
    pytest.mark.skipif(bool(MEMJS.missing()), reason=MEMJS.setup),
    pytest.mark.skipif(shutil.which("memcached") is None, reason="apt-get install memcached"),
]
MEMCACHED = "memcached:threads=1,memory=16"
GETS = ("--keys", "20", "--size", "30", "--mix", "get=1", "--ops", "100")
WIRES = {"memjs": "binary", "memcached": "text", "memcache-client": "text"}
# threads, connections, depth, and outstanding operations.
SHAPES = {(4, 4, 1): 4, (4, 2, 1): 4, (2, 4, 1): 4, (1, 2, 8): 16, (4, 2, 3): 12}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape)))
@pytest.mark.parametrize("client", WIRES)
def test_callers_are_lanes_of_one_event_loop(
    workers: Workers, client: str, shape: tuple[int, int, int], tmp_path: Path
) -> None:
    threads, connections, depth = shape
    tape = worker_driver.write_tape(tmp_path, *GETS)
    worker, ready = workers(f"node/{client}")
    with running(parse_spec(MEMCACHED)) as server:
        assert {"threads", "shared", "pipeline"} <= set(ready.capabilities)
        alone = int(server.stats()["curr_connections"])
        setup = worker_driver.patient(
            servers=server.addresses,
            wire=WIRES[client],
            tape=str(tape),
            threads=threads,
            connections=connections,
            depth=depth,
        )
        assert isinstance(worker_driver.ask(worker, setup), Ready)
        assert worker_driver.play(worker, RunRequest(phase="prefill")).operations["set"].ok == 20
        filled = server.stats()
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=1003))
        after = server.stats()
    assert done.max_in_flight == SHAPES[shape]
    assert done.operations["get"].hits == done.operations["get"].ok == 1003
    assert worker_driver.rise(filled, after, "cmd_get") == 1003
    assert int(after["curr_connections"]) - alone == connections
    assert done.reconnects == 0


@pytest.mark.parametrize(
    ("client", "hashing"), [("memjs", "default"), ("memcached", "default"), ("memcached", "ketama")]
)
def test_keys_are_spread_over_servers(
    workers: Workers, client: str, hashing: str, tmp_path: Path
) -> None:
    tape = worker_driver.write_tape(tmp_path, "--keys", "200", "--mix", "get=1", "--ops", "100")
    worker, ready = workers(f"node/{client}")
    with running(parse_spec(MEMCACHED)) as one, running(parse_spec(MEMCACHED)) as two:
        assert "cluster" in ready.capabilities
        setup = worker_driver.patient(
            servers=[*one.addresses, *two.addresses],
            wire=WIRES[client],
            tape=str(tape),
            options={"hashing": hashing},
        )
        assert isinstance(worker_driver.ask(worker, setup), Ready)
        worker_driver.play(worker, RunRequest(phase="prefill"))
        counts = [int(server.stats()["curr_items"]) for server in (one, two)]
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=400))
    assert sum(counts) == 200
    assert min(counts) >= 10
    assert done.operations["get"].hits == 400


def test_a_stop_reaches_a_loop_that_never_waits(tmp_path: Path) -> None:
    """Neither a cache in the process nor a write without a reply gives the event loop its turn."""
    gets = worker_driver.write_tape(tmp_path, *GETS)
    with worker_driver.started(CLIENTS["node/lru-cache"]) as (worker, _):
        setup = worker_driver.patient(servers=[], wire="none", tape=str(gets), threads=3)
        assert isinstance(worker_driver.ask(worker, setup), Ready)
        worker_driver.play(worker, RunRequest(phase="prefill"))
        worker.send(RunRequest(phase="measure"))
        worker.send(Stop())
        assert not isinstance(worker_driver.finish(worker), Failure)
    sets = worker_driver.write_tape(tmp_path, *GETS[:-4], "--mix", "set_noreply=1", "--ops", "100")
    with (
        running(parse_spec(MEMCACHED)) as server,
        worker_driver.started(CLIENTS["node/memcache-client"]) as (worker, _),
    ):
        assert isinstance(
            worker_driver.ask(
                worker, worker_driver.patient(servers=server.addresses, tape=str(sets))
            ),
            Ready,
        )
        before = server.stats()
        done = worker_driver.play(worker, RunRequest(phase="measure", duration_ms=300))
        assert done.barriers == 1
        stored = worker_driver.rise(before, server.stats(), "cmd_set")
        assert done.operations["set_noreply"].ok == stored > 0


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "connections that do not go round": ("memjs", {"threads": 3, "connections": 2}),
    "another wire": ("memjs", {"wire": "text"}),
    "a Unix socket": ("memjs", {"servers": ["unix:/nowhere"]}),
    "several servers": (
        "memcache-client",
        {"wire": "text", "servers": ["127.0.0.1:1", "127.0.0.1:2"]},
    ),
    "an option": ("memcached", {"wire": "text", "options": {"colour": "blue"}}),
    "an option's value": ("memcached", {"wire": "text", "options": {"hashing": "crc"}}),
    "a profile": ("memjs", {"options": {"profile": "fast"}}),
    "servers of a cache in the process": ("lru-cache", {"wire": "none"}),
    "depth of a cache in the process": ("lru-cache", {"wire": "none", "servers": [], "depth": 2}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_do_is_unsupported(workers: Workers, name: str, tmp_path: Path) -> None:
    client, fields = REFUSED[name]
    setup: dict[str, Any] = {"servers": ["127.0.0.1:1"], "wire": "binary", **fields}
    worker, _ = workers(f"node/{client}")
    answer = worker_driver.ask(
        worker, worker_driver.patient(tape=str(worker_driver.write_tape(tmp_path, *GETS)), **setup)
    )
    assert isinstance(answer, Unsupported), answer
    assert answer.reason.startswith(client)


def test_an_unknown_client_is_named_with_the_known_ones() -> None:
    command = ["node", str(FOLDER / "worker.mjs"), "memjsd"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert all(name in line for name in ("memjs", "memcached", "memcache-client", "lru-cache"))


def test_times_are_counted_in_the_buckets_of_hdrhistogram() -> None:
    """Every doubling, its edges, and beyond what 32 bits and the histogram hold."""
    edges = [2**power + apart for power in range(1, 37) for apart in (-1, 0, 1)]
    times = [*edges, 1999, 12_345_678, 5_000_000_000, 99_999_999_999]
    script = (
        "import { Histogram } from './histogram.mjs'; const times = new Histogram();"
        f"for (const ns of {json.dumps([*times, 150_000_000_000, 0.3])}) times.note(ns);"
        "console.log(times.encode());"
    )
    ran = subprocess.run(
        ["node", "--input-type=module", "-e", script],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = HdrHistogram(1, 100_000_000_000, 3)
    for ns in [*times, 100_000_000_000, 1]:
        expected.record_value(ns)
    told = histogram.decode(ran.stdout.strip())
    wanted = histogram.decode(expected.encode().decode())
    assert told.count == wanted.count == len(times) + 2
    size = min(len(told.counts), len(wanted.counts))
    assert (told.counts[:size] == wanted.counts[:size]).all()
