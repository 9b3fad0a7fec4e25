"""The Java worker's own edges: shared clients, futures, class paths, clusters, bad tapes."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from cachemark import process
from cachemark.clients import registry
from cachemark.conformance.proxy import proxied
from cachemark.protocol import Failure, Ready, Run, Unsupported
from cachemark.servers import parse_spec, running
from tests.workers import driver

CLIENTS = registry(process.binary_path())
SPY = CLIENTS["java/spymemcached"]
pytestmark = [
    pytest.mark.skipif(bool(SPY.missing()), reason=SPY.setup),
    pytest.mark.skipif(shutil.which("memcached") is None, reason="apt-get install memcached"),
]
MEMCACHED = "memcached:threads=1,memory=16"
GETS = ("--keys", "20", "--size", "30", "--mix", "get=1", "--ops", "100")
MIXED = ("--keys", "20", "--size", "10..50", "--mix", "get=2,mget=1,set=1,delete=1", "--ops", "40")
NETWORK = ("spymemcached", "elasticache", "folsom", "xmemcached")
FUTURES = ("spymemcached", "elasticache", "folsom")


def prepared(client: str, tape: Path, servers: list[str], **fields: Any) -> Any:
    """What a new worker answers to a prepare."""
    with driver.started(CLIENTS[f"java/{client}"]) as (worker, _):
        return driver.ask(worker, driver.patient(servers=servers, tape=str(tape), **fields))


@pytest.mark.parametrize(("client", "depth"), [*((name, 8) for name in FUTURES), ("xmemcached", 1)])
def test_callers_share_clients(client: str, depth: int, tmp_path: Path) -> None:
    """Four callers on two connections, each with its operations outstanding; each read is one."""
    tape = driver.write_tape(tmp_path, *GETS)
    with (
        running(parse_spec(MEMCACHED)) as server,
        driver.started(CLIENTS[f"java/{client}"]) as (worker, ready),
    ):
        assert "shared" in ready.capabilities
        before = server.stats()
        setup = driver.patient(
            servers=server.addresses, threads=4, connections=2, depth=depth, tape=str(tape)
        )
        answer = driver.ask(worker, setup)
        assert isinstance(answer, Ready), answer
        connected = server.stats()
        assert driver.play(worker, Run(phase="prefill")).operations["set"].ok == 20
        filled = server.stats()
        done = driver.play(worker, Run(phase="measure", ops=2002))
        after = server.stats()
    # The second is that of `stats` itself.
    assert driver.rise(before, connected, "total_connections") - 1 <= 2
    assert done.max_in_flight == 4 * depth
    assert done.operations["get"].hits == done.operations["get"].ok == 2002
    assert driver.rise(filled, after, "cmd_get") == 2002


def test_waiting_gets_are_merged_only_as_the_library_comes(tmp_path: Path) -> None:
    """xmemcached with many callers that want the same key."""
    tape = driver.write_tape(tmp_path, "--keys", "1", "--mix", "get=1", "--ops", "64")
    sent: dict[str, int] = {}
    with running(parse_spec(MEMCACHED)) as server:
        for profile in ("common", "defaults"):
            with driver.started(CLIENTS["java/xmemcached"]) as (worker, _):
                setup = driver.patient(
                    servers=server.addresses,
                    threads=16,
                    tape=str(tape),
                    options={"profile": profile},
                )
                assert isinstance(driver.ask(worker, setup), Ready)
                driver.play(worker, Run(phase="prefill"))
                before = server.stats()
                done = driver.play(worker, Run(phase="measure", ops=20_000))
                assert done.operations["get"].hits == 20_000
                sent[profile] = driver.rise(before, server.stats(), "cmd_get")
    assert sent["common"] == 20_000
    assert sent["defaults"] < 20_000


def test_a_fork_of_the_same_package_has_a_class_path_of_its_own() -> None:
    versions: dict[str, str] = {}
    for name in ("spymemcached", "elasticache"):
        with driver.started(CLIENTS[f"java/{name}"]) as (_, ready):
            versions[ready.library] = ready.library_version
    assert versions == {"spymemcached": "2.12.3", "elasticache-java-cluster-client": "1.2.4"}


@pytest.mark.parametrize(
    ("client", "flags"), [("spymemcached", 2048), ("xmemcached", 2048), ("folsom", 0)]
)
def test_a_library_as_it_comes_has_its_own_transcoder(
    client: str, flags: int, tmp_path: Path
) -> None:
    tape = driver.write_tape(tmp_path, *GETS)
    with (
        running(parse_spec(MEMCACHED)) as server,
        proxied(server.addresses[0]) as proxy,
        driver.started(CLIENTS[f"java/{client}"]) as (worker, _),
    ):
        setup = driver.patient(
            servers=[proxy.address], tape=str(tape), options={"profile": "defaults"}
        )
        assert isinstance(driver.ask(worker, setup), Ready)
        assert driver.play(worker, Run(phase="prefill")).operations["set"].ok == 20
        assert driver.play(worker, Run(phase="measure", ops=50)).operations["get"].hits == 50
        assert {write.flags for write in proxy.writes} == {flags}


@pytest.mark.parametrize(
    ("client", "hashing"),
    [("spymemcached", "default"), ("spymemcached", "ketama"), ("xmemcached", "ketama"),
     ("folsom", "default")],
)  # fmt: skip
def test_keys_are_spread_over_servers(client: str, hashing: str, tmp_path: Path) -> None:
    tape = driver.write_tape(tmp_path, "--keys", "200", "--mix", "get=1,mget=1", "--ops", "100")
    with (
        running(parse_spec(MEMCACHED)) as one,
        running(parse_spec(MEMCACHED)) as two,
        driver.started(CLIENTS[f"java/{client}"]) as (worker, ready),
    ):
        assert "cluster" in ready.capabilities
        servers = [*one.addresses, *two.addresses]
        setup = driver.patient(servers=servers, tape=str(tape), options={"hashing": hashing})
        assert isinstance(driver.ask(worker, setup), Ready)
        driver.play(worker, Run(phase="prefill"))
        counts = [int(server.stats()["curr_items"]) for server in (one, two)]
        done = driver.play(worker, Run(phase="measure", ops=200))
    assert sum(counts) == 200
    assert min(counts) >= 10
    assert all(told.misses == 0 and not told.errors for told in done.operations.values())


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "depth of blocking calls": ("xmemcached", {"depth": 2}),
    "connections": ("folsom", {"threads": 4, "connections": 3}),
    "more connections than callers": ("folsom", {"connections": 2}),
    "wire": ("folsom", {"wire": "meta"}),
    "another ketama": ("folsom", {"options": {"hashing": "ketama"}}),
    "options": ("spymemcached", {"options": {"colour": "blue"}}),
    "depth with several servers": (
        "spymemcached",
        {"servers": ["127.0.0.1:1", "127.0.0.1:2"], "depth": 2},
    ),
    "a cache with a server": ("caffeine", {"wire": "none"}),
    "a client without one": ("folsom", {"servers": []}),
    "a path": ("folsom", {"servers": ["unix:/nowhere"]}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_do_is_unsupported(name: str, tmp_path: Path) -> None:
    client, fields = REFUSED[name]
    tape = driver.write_tape(tmp_path, *GETS)
    answer = prepared(client, tape, **{"servers": ["127.0.0.1:1"], **fields})
    assert isinstance(answer, Unsupported), answer
    assert answer.reason


def test_depth_and_a_schedule_are_unsupported(tmp_path: Path) -> None:
    schedule = ("--schedule", "uniform", "--rate", "100", "--duration", "400ms")
    tape = driver.write_tape(tmp_path, *GETS[:-2], *schedule)
    answer = prepared("folsom", tape, ["127.0.0.1:1"], depth=2)
    assert isinstance(answer, Unsupported), answer


@pytest.mark.parametrize("client", ["null", "caffeine"])
def test_a_cache_inside_is_shared_by_all_callers(client: str, tmp_path: Path) -> None:
    tape = driver.write_tape(tmp_path, *MIXED, "--exptime", "100")
    with driver.started(CLIENTS[f"java/{client}"]) as (worker, ready):
        assert "none" in ready.capabilities
        setup = driver.patient(servers=[], wire="none", threads=3, connections=3, tape=str(tape))
        answer = driver.ask(worker, setup)
        assert isinstance(answer, Ready), answer
        assert driver.play(worker, Run(phase="prefill")).operations["set"].ok == 20
        done = driver.play(worker, Run(phase="measure", ops=1000))
        worker.bye()
    assert sum(told.ok for told in done.operations.values()) == 1000
    assert done.operations["get"].hits > 0


@pytest.mark.parametrize(
    "schedule", [(), ("--schedule", "uniform", "--rate", "100", "--duration", "400ms")]
)
def test_no_tape_can_crash_it(schedule: tuple[str, ...], tmp_path: Path) -> None:
    arguments = [*MIXED[:-2], *schedule] if schedule else MIXED
    good = driver.write_tape(tmp_path, *arguments).read_bytes()
    draw, bad = random.Random(7), tmp_path / "bad"
    refused = 0
    with driver.started(CLIENTS["java/null"]) as (worker, _):
        for attempt in range(150):
            data = bytearray(good)
            if attempt % 3 == 0:
                at = 8 * draw.randrange(23)  # a field of the header
                field = draw.choice([0, 1, 7, 2**31, 2**63, 2**64 - 1])
                data[at : at + 8] = field.to_bytes(8, "little")
            elif attempt % 3 == 1:
                at = 184 + draw.randrange(600)  # keys, offsets, lengths
                data[at] = draw.randrange(256)
            else:
                del data[draw.randrange(len(data)) :]
            bad.write_bytes(data)
            request = driver.patient(servers=[], wire="none", tape=str(bad))
            answer = driver.ask(worker, request)
            assert isinstance(answer, (Failure, Ready, Unsupported)), answer
            if isinstance(answer, Failure):
                assert answer.kind == "tape", answer
                refused += 1
        assert refused >= 50
        answer = driver.ask(
            worker, driver.patient(servers=[], wire="none", tape=str(tmp_path / "none"))
        )
        assert isinstance(answer, Failure)
        assert answer.kind == "tape"
        answer = driver.ask(worker, Run(phase="measure", ops=1))
        assert isinstance(answer, Failure), "it played a tape that it was not given"
