"""Children that write without end, or whose children leave their group: nothing of them is left."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cachemark.host import descendants, process

ESCAPING = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(1)
        time.sleep(600)
    os._exit(0)
os.wait()
print("ready", flush=True)
time.sleep(600)
"""


def marked(pid: int) -> list[int]:
    """The processes that have the same mark in their environment as this one."""
    mark = next(
        part
        for part in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        if part.startswith(b"CACHEMARK_CHILD=")
    )
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_processes_that_left_their_group_are_killed() -> None:
    child = process.start([sys.executable, "-c", ESCAPING], stdout=subprocess.PIPE)
    with child:
        assert child.popen.stdout is not None
        assert child.popen.stdout.readline() == b"ready\n"
        pids = marked(child.pid)
        groups = {os.getpgid(pid) for pid in pids}
        assert len(groups) == 2, "one has left the group of its parent"
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


# It clears its environment, leaves its group, and its parent ends at once.
UNMARKED = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        os.close(1)
        os.execve("/bin/sleep", ["sleep", "600"], {})
    os._exit(0)
os.wait()
os.close(1)
time.sleep(600)
"""


def unmarked(child: process.Child) -> int:
    """The process that has cleared its environment."""
    assert child.popen.stdout is not None
    pid = int(child.popen.stdout.readline())
    child.popen.stdout.read()  # its last writer has become the sleep
    assert os.getsid(pid) not in (child.pid, os.getsid(0))
    return pid


def test_processes_that_cleared_their_environment_are_killed() -> None:
    with process.start([sys.executable, "-c", UNMARKED], stdout=subprocess.PIPE) as child:
        pid = unmarked(child)
    assert not Path(f"/proc/{pid}").exists()


def test_they_end_with_the_last_possible_parent() -> None:
    """A server's helper must not end with the worker that was started after it."""
    with process.start([sys.executable, "-c", UNMARKED], stdout=subprocess.PIPE) as server:
        pid = unmarked(server)
        with process.start(["true"]) as worker:
            assert worker.wait(60)
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_the_processes_of_another_child_go_on() -> None:
    """Whether they have left their group or not."""
    with process.start([sys.executable, "-c", ESCAPING], stdout=subprocess.PIPE) as other:
        assert other.popen.stdout is not None
        assert other.popen.stdout.readline() == b"ready\n"
        pids = marked(other.pid)
        with process.start(["true"]) as child:
            assert child.wait(60)
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)


def test_our_own_processes_go_on() -> None:
    with subprocess.Popen(["sleep", "600"]) as own:
        with process.start(["true"]) as child:
            assert child.wait(60)
        assert own.poll() is None
        own.kill()


def test_endless_stderr_uses_neither_disk_nor_memory() -> None:
    """It is read slowly, so the child waits; what it wrote last is known."""
    text = "while true; do echo 0123456789012345678901234567890123456789; done >&2"
    with process.start(["sh", "-c", text]) as child:
        assert not child.wait(1.0)
        name = str(Path(f"/proc/{child.pid}/fd/2").readlink())
        assert name.startswith("pipe:"), "no file that could grow"
        assert 0 < len(child.log_tail()) <= 16 * 1024
    assert "0123456789" in child.log_tail()


def test_the_tail_of_stderr_is_complete_after_the_end() -> None:
    size = 40_000
    program = f"import sys; sys.stderr.write('x' * {size} + 'end')"
    with process.start([sys.executable, "-c", program]) as child:
        assert child.wait(60)
        assert child.log_tail() == ("x" * (process.TAIL_BYTES - 3)) + "end"
    assert child.log_tail().endswith("xend")


def test_no_file_descriptor_stays_open() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with process.start(["sh", "-c", "echo x >&2"]) as child:
            assert child.wait(60)
        assert child.log_tail() == "x\n"
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(
    ("parents", "may"),
    [
        ({9: 8, 8: 7, 7: 1, 1: 0}, True),
        ({9: 8, 8: 1, 7: 1, 1: 0}, False),
        ({9: 8, 8: 0, 7: 1, 1: 0}, False),
        # 8 has ended since 9 was read, and 7 is the new parent of 9.
        ({9: 8, 7: 1, 1: 0}, True),
        ({9: 8, 8: 9}, True),
    ],
    ids=["child", "sibling", "of the kernel", "orphan", "circle"],
)
def test_a_process_that_may_belong_to_a_child_is_examined(
    parents: dict[int, int], may: bool
) -> None:
    assert descendants.may_descend(9, 7, parents) == may
