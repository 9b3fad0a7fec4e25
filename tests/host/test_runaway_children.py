"""Children that write without end, or whose children leave their group: nothing of them is left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cachemark.host import process, stderr_tail

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


def test_endless_stderr_uses_neither_disk_nor_memory() -> None:
    """It is read slowly, so the child waits; what it wrote last is known."""
    text = "while true; do echo 0123456789012345678901234567890123456789; done >&2"
    with process.start(["sh", "-c", text]) as child:
        assert not child.wait(1.0)
        name = str(Path(f"/proc/{child.pid}/fd/2").readlink())
        assert name.startswith("pipe:"), "no file that could grow"
        assert 0 < len(child.log_tail()) <= 16 * 1024
    assert "0123456789" in child.log_tail()


def test_the_tail_of_stderr_is_complete_after_the_child_has_ended() -> None:
    size = 40_000
    program = f"import sys; sys.stderr.write('x' * {size} + 'end')"
    with process.start([sys.executable, "-c", program]) as child:
        assert child.wait(60)
        assert child.log_tail() == ("x" * (stderr_tail.TAIL_BYTES - 3)) + "end"
    assert child.log_tail().endswith("xend")


def test_no_file_descriptor_stays_open() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with process.start(["sh", "-c", "echo x >&2"]) as child:
            assert child.wait(60)
        assert child.log_tail() == "x\n"
    assert len(list(Path("/proc/self/fd").iterdir())) == before
