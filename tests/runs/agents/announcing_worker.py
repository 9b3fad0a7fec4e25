"""Passes requests on to another worker, and says in a FIFO when it is asked to measure.

Usage: announcing_worker.py FIFO PROGRAM ARGUMENTS
"""

import contextlib
import os
import subprocess
import sys


def main() -> None:
    fifo, *command = sys.argv[1:]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        for line in sys.stdin.buffer:
            worker.stdin.write(line)
            worker.stdin.flush()
            if b'"phase":"measure"' in line:
                announce(fifo)
        worker.stdin.close()


def announce(fifo: str) -> None:
    """Write a byte, if anybody reads."""
    with contextlib.suppress(OSError):
        end = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        os.write(end, b"m")
        os.close(end)


if __name__ == "__main__":
    main()
