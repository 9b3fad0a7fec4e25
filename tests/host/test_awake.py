"""CPUs that are kept awake by threads of idle priority."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cachemark.host.awake import awake
from cachemark.host.noise import NoiseMonitor
from cachemark.host.placement import usable_cpus
from cachemark.model.errors import UsageError
from tests.builders.small_experiments import read_outcomes, write
from tests.conftest import Cli

PATIENCE_MS = 60_000


def policies(pid: int) -> dict[int, int]:
    """The scheduling policies of the spinning threads, by the CPU of each."""
    found: dict[int, int] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().startswith("awake-"):
            (cpu,) = os.sched_getaffinity(int(task.name))
            found[cpu] = os.sched_getscheduler(int(task.name))
    return found


def ends(pidfd: int) -> bool:
    """Whether a process ends within the time limit."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(PATIENCE_MS))


def test_each_cpu_has_an_idle_priority_thread_until_the_end() -> None:
    cpus = usable_cpus()
    with awake(cpus) as pid:
        assert policies(pid) == dict.fromkeys(cpus, os.SCHED_IDLE)
        pidfd = os.pidfd_open(pid)
    assert ends(pidfd)
    os.close(pidfd)


def test_it_ends_with_a_parent_that_is_killed() -> None:
    program = (
        "import sys, time\n"
        "from cachemark.host.awake import awake\n"
        "from cachemark.host.placement import usable_cpus\n"
        "with awake(usable_cpus()[:1]) as pid:\n"
        "    print(pid, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    piped = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=piped, stdout=piped) as parent:
        assert parent.stdout is not None
        pidfd = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
        assert ends(pidfd)
        os.close(pidfd)


def test_a_refusal_of_the_kernel_is_an_error() -> None:
    with pytest.raises(UsageError, match="CPU 1023: the kernel does not let"), awake([1023]):
        pass


def test_its_cpu_time_is_ours_without_reported_cpu_pressure() -> None:
    with awake(usable_cpus()) as pid:
        monitor = NoiseMonitor()
        monitor.start([os.getpid()], [], pid)
        noise = monitor.stop()
    assert "cpu_pressure_us" not in noise.counters


def test_a_run_reports_that_it_kept_cpus_awake(cli: Cli, tmp_path: Path) -> None:
    asked = cli("run", write(tmp_path), "--set", "awake=true", "--blocks", "1")
    assert asked.returncode in (0, 1), asked.stderr
    (report,) = tmp_path.glob("results/*/report.md")
    assert "idle CPUs kept awake" in report.read_text()
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.awake
    assert outcome.state == "measured", outcome.reason
