"""The memory that a guarded process may take, and memory that does not count."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from cachemark.endpoints.worker import Worker
from cachemark.host import memory, process
from cachemark.host.memory import VARIABLE, Guarded, MemoryGuard, available_bytes
from cachemark.model.errors import UsageError

MIB = 2**20
# Says when it is ready, does what stdin asks, says so, and waits for the end of its stdin.
OBEYS = """
import mmap, os, sys
kept = []
print("ready", flush=True)
sys.stdin.readline()
{act}
print("done", flush=True)
sys.stdin.read()
"""
GROWS = "kept.append(b'x' * (48 << 20))"
# All children end with the pipe that their parent holds.
FORKS = """
end, held = os.pipe()
def fork(act):
    ready, told = os.pipe()
    if os.fork() == 0:
        os.close(held)
        kept.append(act())
        os.write(told, b"x")
        os.read(end, 1)
        os._exit(0)
    os.read(ready, 1)
"""
CHILD_GROWS = FORKS + "fork(lambda: b'x' * (48 << 20))"
CHILDREN_SHARE = (
    FORKS
    + """
kept.append(b"x" * (16 << 20))
for _ in range(4):
    fork(lambda: None)
"""
)
SHARED_MEMORY = """
shared = mmap.mmap(-1, 48 << 20)
for _ in range(48):
    shared.write(b"x" * (1 << 20))
"""


class Obedient:
    """A process that takes memory on request."""

    def __init__(self, child: process.Child, guarded: Guarded) -> None:
        self.child, self.guarded = child, guarded

    def act(self) -> None:
        """Wait until it has done what it does; it may be ended meanwhile."""
        stdin: IO[bytes] | None = self.child.popen.stdin
        stdout: IO[bytes] | None = self.child.popen.stdout
        assert stdin
        assert stdout
        stdin.write(b"\n")
        stdin.flush()
        stdout.readline()


@contextmanager
def obedient(act: str, guard: MemoryGuard) -> Generator[Obedient]:
    """A guarded process that is ready, and may grow by the limit from now on."""
    command = [sys.executable, "-c", OBEYS.format(act=act)]
    with process.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.popen.stdout is not None
        assert child.popen.stdout.readline() == b"ready\n"
        with guard.watching("some/client", child.pid, child.kill) as guarded:
            yield Obedient(child, guarded)


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "32m")


@pytest.mark.parametrize("act", [GROWS, CHILD_GROWS], ids=["itself", "child"])
def test_a_process_that_grows_beyond_the_limit_is_ended(act: str) -> None:
    guard = MemoryGuard()
    with obedient(act, guard) as one:
        one.guarded.limit_growth()
        one.act()
        guard.look()
        assert one.child.wait(60)
        assert one.guarded.reason.startswith("some/client: it was ended because its memory grew by")
        assert "the limit is 32 MiB" in one.guarded.reason
        assert VARIABLE in one.guarded.remedy


@pytest.mark.parametrize("act", [CHILDREN_SHARE, SHARED_MEMORY], ids=["forks", "store"])
def test_memory_that_processes_share_does_not_count(act: str) -> None:
    guard = MemoryGuard()
    with obedient(act, guard) as one:
        one.guarded.limit_growth()
        one.act()
        guard.look()
        assert not one.guarded.reason
        assert one.child.exited() is None


def test_what_a_process_took_before_does_not_count() -> None:
    guard = MemoryGuard()
    with obedient(GROWS, guard) as one:
        one.act()
        guard.look()
        one.guarded.limit_growth()
        guard.look()
        assert not one.guarded.reason


def machine(root: Path, available_mib: int) -> Path:
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc/meminfo").write_text(f"MemAvailable: {available_mib * 1024} kB\n")
    return root


def test_the_largest_process_ends_before_the_machine_has_no_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(memory, "MIN_FREE_BYTES", 16 * MIB)
    guard = MemoryGuard(machine(tmp_path, 100))
    with obedient("pass", guard) as small, obedient(GROWS, guard) as large:
        large.act()
        guard.look()
        assert not large.guarded.reason, "there is memory left"
        machine(tmp_path, 10)
        guard.look()
        assert "only 10 MiB were left" in large.guarded.reason
        assert not small.guarded.reason


def test_no_process_ends_for_memory_that_others_took(tmp_path: Path) -> None:
    guard = MemoryGuard(machine(tmp_path, 1000))
    with obedient("pass", guard) as one:
        machine(tmp_path, 10)
        guard.look()
        assert not one.guarded.reason


def test_half_of_the_memory_is_the_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE)
    guard = MemoryGuard(machine(tmp_path, 64))
    with obedient(GROWS, guard) as one:
        one.guarded.limit_growth()
        one.act()
        machine(tmp_path, 1000)
        guard.look()
        assert "the limit is 32 MiB" in one.guarded.reason


def test_a_machine_that_hides_its_memory_sets_no_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(VARIABLE)
    guard = MemoryGuard(tmp_path)
    with obedient(GROWS, guard) as one:
        one.guarded.limit_growth()
        one.act()
        guard.look()
        assert not one.guarded.reason


@pytest.mark.parametrize("text", ["much", "0", "-1g", "1e99"])
def test_a_limit_that_is_no_size_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(UsageError, match=VARIABLE):
        Worker(["cat"])


def test_pages_of_files_are_available(tmp_path: Path) -> None:
    root = machine(tmp_path, 1000)
    group = root / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (group / "memory.max").write_text(f"{100 * MIB}\n")
    (group / "memory.current").write_text(f"{90 * MIB}\n")
    facts = f"anon {20 * MIB}\ninactive_file {50 * MIB}\nactive_file {10 * MIB}\n"
    (group / "memory.stat").write_text(facts)
    assert available_bytes(root) == 70 * MIB
