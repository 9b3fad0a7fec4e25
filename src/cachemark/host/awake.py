"""CPUs that do not go to sleep while something is measured on them."""

from __future__ import annotations

import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from cachemark.host import process
from cachemark.model.errors import UsageError


@contextmanager
def awake(cpus: Sequence[int]) -> Generator[int]:
    """Have each of the CPUs run a thread that gives way to everything else, meanwhile.

    The id of the process that does so; it is gone afterwards, and with this one should it be
    killed. Raises UsageError where the kernel refuses.
    """
    named = ",".join(map(str, cpus))
    command = [process.binary_path(), "awake", "--cpus", named, "--stop-with-stdin"]
    with process.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        if child.popen.stdout is None or not child.popen.stdout.readline():
            child.wait(1.0)
            why = child.last_words().removeprefix(f"{process.ENGINE}: ")
            raise UsageError(f"the CPUs cannot be kept awake: {why}", "do without --awake")
        yield child.pid
