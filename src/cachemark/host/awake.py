"""Keeps CPUs out of their sleep states while something is measured."""

import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from cachemark.host import process
from cachemark.model.errors import UsageError


@contextmanager
def awake(cpus: Sequence[int]) -> Generator[int]:
    """Run a thread of the lowest priority on each CPU, until the context ends.

    Yields the id of the process with these threads. It also ends if this process is killed. Raises
    UsageError if the kernel refuses.
    """
    cpu_list = ",".join(map(str, cpus))
    command = [process.binary_path(), "awake", "--cpus", cpu_list, "--stop-with-stdin"]
    with process.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        if child.popen.stdout is None or not child.popen.stdout.readline():
            child.wait(1.0)
            reason = child.last_stderr_line().removeprefix(f"{process.ENGINE}: ")
            raise UsageError(f"the CPUs cannot be kept awake: {reason}", "run without awake = true")
        yield child.pid
