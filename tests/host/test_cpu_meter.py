"""CPU time of processes, read from their clocks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cachemark.host.cpu_meter import UNKNOWN_NS, CpuMeter, StealMeter, family

SPIN = "x = sum(range(3_000_000)); print(x, flush=True); input()"


def test_cpu_time_of_a_process_and_its_child_is_counted() -> None:
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SPIN!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", nested], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        members = family(child.pid)
        both, parent = CpuMeter([child.pid]).read_ns(), CpuMeter([]).read_ns()
        child.communicate("\n")
    assert len(members) == 2
    assert parent == UNKNOWN_NS
    assert both > 1_000_000


def test_an_ended_process_has_no_cpu_time() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    meter = CpuMeter([child.pid])
    child.wait()
    assert meter.read_ns() == UNKNOWN_NS


def test_our_own_cpu_time_never_decreases() -> None:
    meter = CpuMeter([os.getpid()])
    first = meter.read_ns()
    assert sum(range(100_000)) > 0
    assert meter.read_ns() > first > 0


def test_steal_is_the_eighth_field_in_ns(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  1 2 3 4 5 6 7 250 9 10\ncpu0 1\n")
    meter = StealMeter(stat)
    try:
        assert meter.read_ns() == 250 * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    finally:
        meter.close()
