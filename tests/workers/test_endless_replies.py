"""A server whose replies never end: a client that keeps them is ended, and the reason says why."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cachemark.analysis.resilience.cell import CellName
from cachemark.endpoints.clients import ClientSpec, parse_client, registry
from cachemark.endpoints.servers import parse_spec
from cachemark.host import process
from cachemark.host.memory import VARIABLE
from cachemark.model.experiment import Keys, Load, Timing, Workload
from cachemark.model.faults import Fault, Freeze
from cachemark.model.outcome import Cell, Outcome, Trial
from cachemark.runs.resilience import play
from cachemark.runs.resilience.injection import Injection
from cachemark.runs.resilience.play import CellPlayer
from cachemark.runs.tapes import TapeCache
from cachemark.runs.trials.setting import Setting
from cachemark.runs.trials.trial import run_trial
from tests.workers.endless_server import endless

pytestmark = pytest.mark.xdist_group("endless replies")
# Libraries that keep all of a reply, and the protocol that each is played with.
GREEDY = {
    "c/libmemcached": "text",
    "go/gomemcache": "text",
    "perl/fast": "text",
    "php/memcached": "text",
    "python/pymemcache": "text",
    "reference": "text",
    "ruby/dalli": "binary",
    "rust/memcache": "text",
}
LIMIT = "the limit is 64 MiB"


def spec(client: str) -> ClientSpec:
    found = parse_client(client, registry(process.binary_path()))
    if missing := found.client.missing():
        pytest.skip(missing)
    return found


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "64m")


def play_trial(client: str, address: str, folder: Path, **load: Any) -> Outcome:
    """A trial with one caller, unless `load` says otherwise."""
    workload = Workload(name="w", mix={"get": 9, "set": 1}, records=500, keys=Keys(count=50))
    loaded = Load(name="l", **{"wire": GREEDY[client], **load})
    timing = Timing(warmup_ms=0, measure_ms=60_000, timeout_ms=60_000, ready_ms=60_000)
    cell = Cell(client=client, server=f"remote:{address}", workload="w", load="l")
    return run_trial(
        Setting(
            run="r",
            trial=Trial(index=0, block=0, cell=cell, tape_seed=1),
            client=spec(client),
            server=parse_spec(cell.server),
            workload=workload,
            load=loaded,
            timing=timing,
            tape=TapeCache(process.binary_path(), folder).get(workload, loaded, timing, 1),
            server_cpus="",
            worker_cpus="",
        ),
        lambda _: None,
    )


def check_ended(outcome: Outcome, client: str) -> None:
    assert outcome.state == "failed"
    assert outcome.reason.startswith(client)
    assert LIMIT in outcome.reason
    assert VARIABLE in outcome.remedy


@pytest.mark.parametrize("client", GREEDY)
def test_a_client_that_keeps_a_value_without_end_is_ended(client: str, tmp_path: Path) -> None:
    with endless(b"get") as address:
        check_ended(play_trial(client, address, tmp_path), client)


def test_children_of_a_worker_count(tmp_path: Path) -> None:
    with endless(b"get") as address:
        outcome = play_trial("php/memcached", address, tmp_path, threads=2)
    check_ended(outcome, "php/memcached")


def test_the_prefill_has_the_same_limit(tmp_path: Path) -> None:
    with endless(b"set") as address:
        check_ended(play_trial("python/pymemcache", address, tmp_path), "python/pymemcache")


class _Endless(Injection):
    """A fault that was there from the beginning."""

    def __init__(self, address: str) -> None:
        self.addresses = [address]
        self.server_version = "1.6.0"
        self.loss = None

    def begin(self) -> int:
        return time.monotonic_ns()

    def end(self) -> int:
        return time.monotonic_ns()

    def connections(self) -> int:
        return 0

    def misses(self) -> int:
        return 0

    def answered(self) -> int:
        return 0

    def pids(self) -> list[int]:
        return []


def test_a_cell_of_resilience_has_the_same_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @contextmanager
    def injection(_: Fault) -> Generator[Injection]:
        with endless(b"get") as address:
            yield _Endless(address)

    monkeypatch.setattr(play, "injection", injection)
    monkeypatch.setitem(play._TIMEOUT_MS, "common", 60_000)
    fault = Fault(name="f", group="server", about="", make=Freeze(), before_ms=500, during_ms=500)
    name = CellName(client="rust/memcache", profile="common", fault="f", sitting=0)
    outcome = CellPlayer(tmp_path).play(spec("rust/memcache"), name, fault)
    assert outcome.failed.startswith("rust/memcache: it was ended")
    assert LIMIT in outcome.failed
    assert VARIABLE in outcome.failed
