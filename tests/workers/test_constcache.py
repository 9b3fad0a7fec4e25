"""php/constcache calls the store in C that CACHEMARK_CONSTCACHE names; here, a stand-in for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cachemark.endpoints.clients import registry
from cachemark.host import process
from cachemark.model.errors import UnsupportedError
from cachemark.model.protocol import Done, Ready, Run
from tests.workers import worker_driver

CLIENT = registry(process.binary_path())["php/constcache"]
KEYS, VALUE_BYTES, TABLE_BYTES = 100, 200, 8 << 12
OPTIONS = {"memory": "64m", "hash_power": "12"}

pytestmark = pytest.mark.skipif(bool(CLIENT.missing()), reason=CLIENT.setup)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in, compiled and named."""
    path = tmp_path / "store.so"
    source = Path(__file__).parent / "constant_store.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path, source], check=True)
    monkeypatch.setenv("CACHEMARK_CONSTCACHE", str(path))


def played(folder: Path, mix: str, prefill: float, ops: int) -> Done:
    """Prefill a part of the keys, then play each key in turn, with two callers."""
    shape = ("--keys", str(KEYS), "--size", str(VALUE_BYTES), "--distribution", "sequential")
    work = ("--mix", mix, "--ops", str(KEYS), "--prefill", str(prefill))
    tape = worker_driver.write_tape(folder, *shape, *work)
    with worker_driver.started(CLIENT) as (worker, _):
        setup = worker_driver.patient(
            servers=[], wire="none", threads=2, tape=str(tape), options=OPTIONS
        )
        assert isinstance(worker_driver.ask(worker, setup), Ready)
        worker_driver.play(worker, Run(phase="prefill"))
        return worker_driver.play(worker, Run(phase="measure", ops=ops))


@pytest.mark.usefixtures("library")
def test_what_one_caller_stores_another_finds(tmp_path: Path) -> None:
    get = played(tmp_path, "get=1", 0.5, KEYS).operations["get"]
    assert (get.ok, get.hits, get.misses, get.errors) == (KEYS, KEYS // 2, KEYS // 2, {})


@pytest.mark.usefixtures("library")
def test_an_item_is_stored_once(tmp_path: Path) -> None:
    add = played(tmp_path, "add=1", 0.5, KEYS).operations["add"]
    assert (add.ok, add.not_stored, add.errors) == (KEYS, KEYS // 2, {})
    store = played(tmp_path, "set=1", 0.5, KEYS).operations["set"]
    assert (store.ok, store.errors) == (KEYS // 2, {"server": KEYS // 2})


@pytest.mark.usefixtures("library")
def test_its_memory_is_by_its_own_account(tmp_path: Path) -> None:
    done = played(tmp_path, "set=1", 0, KEYS)
    key_bytes = done.operations["set"].key_bytes
    assert done.store_bytes == TABLE_BYTES + KEYS * VALUE_BYTES + key_bytes


def test_without_its_library_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CACHEMARK_CONSTCACHE", raising=False)
    with (
        pytest.raises(UnsupportedError, match="CACHEMARK_CONSTCACHE"),
        worker_driver.started(CLIENT),
    ):
        pytest.fail("the client was ready")
