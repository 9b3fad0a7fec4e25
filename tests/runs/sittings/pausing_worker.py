"""Passes requests on to another worker, and is stopped for a while before it passes on a slice.

Usage: pausing_worker.py NUMBER PROGRAM ARGUMENTS, where NUMBER is that of the slice, counted from
the second `begin_slices` on: the first is that of the warm-up. 0: it is never stopped.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

# How long the pause is that is planted here.
PAUSE_S = 0.6


def main() -> None:
    number, *command = sys.argv[1:]
    begun = slices = 0
    with subprocess.Popen(command, stdin=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        for line in sys.stdin.buffer:
            begun += b'"begin_slices"' in line
            slices += b'"slice"' in line and begun == 2
            if b'"slice"' in line and slices == int(number):
                stop()
            worker.stdin.write(line)
            worker.stdin.flush()
        worker.stdin.close()


def stop() -> None:
    """Stop this process; a child continues it, some time after it has seen that it is stopped."""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        while not stopped(parent):
            time.sleep(0.001)
        time.sleep(PAUSE_S)
        os.kill(parent, signal.SIGCONT)
        os._exit(0)
    threading.Thread(target=os.waitpid, args=(child, 0)).start()
    os.kill(parent, signal.SIGSTOP)


def stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal."""
    return (
        Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "T"
    )


if __name__ == "__main__":
    main()
