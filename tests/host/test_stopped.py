"""A process that is stopped, and threads that woke late: what is a pause, and what is not."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest

from cachemark.analysis.verdict.long_pauses import long_pause_findings
from cachemark.host.noise import NoiseMonitor
from cachemark.model.experiment import Load
from tests.builders.outcomes import measured

MS = 1_000_000


@pytest.fixture
def worker() -> Generator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        yield child
        child.kill()


def signalled(child: subprocess.Popen[bytes], number: signal.Signals, state: int) -> None:
    """Send a signal, and wait until the process is in that state."""
    child.send_signal(number)
    os.waitid(os.P_PID, child.pid, state | os.WNOWAIT)


def test_a_process_that_was_stopped_is_a_long_pause(worker: subprocess.Popen[bytes]) -> None:
    noise = NoiseMonitor()
    noise.start([worker.pid], workers=[worker.pid])
    noise.slept(400 * MS, 400 * MS)
    signalled(worker, signal.SIGSTOP, os.WSTOPPED)
    noise.slept(100 * MS, 100 * MS)
    noise.slept(100 * MS, 100 * MS)
    signalled(worker, signal.SIGCONT, os.WCONTINUED)
    noise.slept(400 * MS, 400 * MS)
    seen = noise.stop()
    assert seen.stopped_ns == 200 * MS
    measure = measured("a", 0, 1000).measure
    assert measure is not None
    second = msgspec.structs.replace(measure, elapsed_ns=1000 * MS)
    (found,) = long_pause_findings(seen, second, Load(name="one"))
    assert (found.rule, found.weight) == ("long-pause", "INVALID")


@pytest.mark.parametrize(("waited_ns", "halted_ns"), [(0, 300 * MS), (290 * MS, 10 * MS)])
def test_a_process_that_waits_for_a_cpu_does_not_halt(
    tmp_path: Path, waited_ns: int, halted_ns: int
) -> None:
    thread = tmp_path / f"proc/{os.getpid()}/task/1"
    thread.mkdir(parents=True)
    (thread / "schedstat").write_text("1000 5000 1\n")
    noise = NoiseMonitor(tmp_path)
    noise.start([])
    (thread / "schedstat").write_text(f"1000 {5000 + waited_ns} 2\n")
    noise.slept(100 * MS, 400 * MS)
    seen = noise.stop()
    assert (seen.longest_pause_ns, seen.longest_halt_ns) == (300 * MS, halted_ns)
