"""The process of the fault proxy ends on request, and when its commander has ended."""

import signal
import subprocess
from collections.abc import Callable

import pytest

from cachemark.host import process

DEADLINE_S = 60.0
NOBODY = "127.0.0.1:1"  # it is asked only when a client connects


def close_stdin(child: process.Child) -> None:
    assert child.popen.stdin is not None
    child.popen.stdin.close()


def terminate(child: process.Child) -> None:
    child.popen.send_signal(signal.SIGTERM)


@pytest.mark.parametrize("end", [close_stdin, terminate])
def test_the_proxy_ends(end: Callable[[process.Child], None]) -> None:
    command = [process.binary_path(), "fault-proxy", "--upstream", NOBODY]
    with process.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.popen.stdout is not None
        assert b"listening" in child.popen.stdout.readline()
        assert child.exited() is None
        end(child)
        assert child.wait(DEADLINE_S)
        assert child.exited() == 0
