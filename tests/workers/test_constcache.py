"""php/constcache calls the store in C that CACHEMARK_CONSTCACHE names; here, a stand-in for it."""

import ctypes
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cachemark.endpoints.clients import registry
from cachemark.endpoints.worker import Worker
from cachemark.host import process
from cachemark.model.errors import UnsupportedError
from cachemark.model.protocol import Done, Ready, RunRequest, Unsupported
from tests.workers import worker_driver

CLIENT = registry(process.binary_path())["php/constcache"]
KEYS, VALUE_BYTES, TABLE_BYTES = 100, 200, 8 << 12
OPTIONS = {"memory": "64m", "hash_power": "12"}
SEMAPHORES = 4
IPC_CREAT, IPC_REMOVE = 0o1000, 0
# The last number that a process can have: a living one has it hardly ever.
NOBODY = 4_194_303

pytestmark = pytest.mark.skipif(bool(CLIENT.missing()), reason=CLIENT.setup)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in, compiled and named."""
    path = tmp_path / "store.so"
    source = Path(__file__).parent / "constant_store.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-pthread", "-o", path, source], check=True)
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
        worker_driver.play(worker, RunRequest(phase="prefill"))
        done = worker_driver.play(worker, RunRequest(phase="measure", ops=ops))
        worker.bye()
        return done


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
@pytest.mark.parametrize("hash_power", ["23", "29", "33", "0"])
def test_a_table_that_does_not_fit_is_refused(hash_power: str, tmp_path: Path) -> None:
    """The library itself would write beyond its memory, or never end."""
    tape = worker_driver.write_tape(tmp_path, "--keys", "1", "--mix", "get=1", "--ops", "1")
    with worker_driver.started(CLIENT) as (worker, _):
        options = {"memory": "64m", "hash_power": hash_power}
        setup = worker_driver.patient(servers=[], wire="none", tape=str(tape), options=options)
        answer = worker_driver.ask(worker, setup)
    assert isinstance(answer, Unsupported)
    assert hash_power in answer.reason
    assert "[" not in answer.reason


@pytest.mark.usefixtures("library")
def test_its_memory_is_by_its_own_account(tmp_path: Path) -> None:
    done = played(tmp_path, "set=1", 0, KEYS)
    key_bytes = done.operations["set"].key_bytes
    assert done.store_bytes == TABLE_BYTES + KEYS * VALUE_BYTES + key_bytes


@contextmanager
def prepared(folder: Path) -> Generator[Worker]:
    """A worker with a store of its own."""
    tape = worker_driver.write_tape(folder, "--keys", "2", "--ops", "2", "--mix", "get=1")
    with worker_driver.started(CLIENT) as (worker, _):
        request = worker_driver.patient(
            servers=[], wire="none", threads=1, tape=str(tape), options=OPTIONS
        )
        assert isinstance(worker_driver.ask(worker, request), Ready)
        yield worker
        worker.bye()


def semaphore_sets() -> dict[int, int]:
    """The kernel's sets of semaphores: the key of each."""
    rows = Path("/proc/sysvipc/sem").read_text(encoding="ascii").splitlines()[1:]
    return {int(row.split()[1]): int(row.split()[0]) for row in rows}


def sets_of(worker: Worker) -> set[int]:
    """Those whose key names a worker."""
    return {name for name, key in semaphore_sets().items() if key & NOBODY == worker.pid}


@contextmanager
def foreign_set(key: int) -> Generator[int]:
    """Semaphores of another program."""
    libc = ctypes.CDLL(None, use_errno=True)
    name = libc.semget(key, SEMAPHORES, IPC_CREAT | 0o600)
    assert name >= 0, ctypes.get_errno()
    try:
        yield name
    finally:
        libc.semctl(name, 0, IPC_REMOVE)


@pytest.mark.usefixtures("library")
def test_what_a_killed_worker_left_is_removed_by_the_next(tmp_path: Path) -> None:
    with prepared(tmp_path) as killed:
        left = sets_of(killed)
        (key,) = (semaphore_sets()[name] for name in left)
        killed.kill()
    assert left <= semaphore_sets().keys()
    with (
        foreign_set(0) as nameless,
        foreign_set(key | NOBODY) as of_nobody,
        prepared(tmp_path) as living,
    ):
        used = sets_of(living)
        assert len(used) == 1
        assert not left & semaphore_sets().keys()
        with prepared(tmp_path):
            assert used | {nameless, of_nobody} <= semaphore_sets().keys()


@pytest.mark.usefixtures("library")
def test_a_worker_that_ends_leaves_nothing(tmp_path: Path) -> None:
    with prepared(tmp_path) as worker:
        used = sets_of(worker)
    assert used
    assert not used & semaphore_sets().keys()


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        (None, "CACHEMARK_CONSTCACHE is not set"),
        ("/nowhere/store.so", "CACHEMARK_CONSTCACHE=/nowhere/store.so is no file"),
        ("/etc/passwd", "'/etc/passwd'"),
    ],
)
def test_without_its_library_the_variable_is_named(
    named: str | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CACHEMARK_CONSTCACHE", raising=False)
    if named is not None:
        monkeypatch.setenv("CACHEMARK_CONSTCACHE", named)
    with (
        pytest.raises(UnsupportedError) as found,
        worker_driver.started(CLIENT),
    ):
        pytest.fail("the client was ready")
    assert reason in str(found.value)
    assert "github.com/angelasong/ConstCache" in found.value.remedy
