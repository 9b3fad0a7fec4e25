"""CPU time of processes, read from their clocks, and the usage of their threads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cachemark.host.cpu_meter import (
    UNKNOWN_NS,
    CpuMeter,
    QueueMeter,
    StealMeter,
    family,
    family_ns,
    waited_ns,
)
from cachemark.host.process import cpu_ns
from cachemark.host.thread_usage import FamilyUsage, watched

WAITS = 200
# A thread that waits for pipes, ends, and leaves the main thread.
PROGRAM = f"""
import threading, time
def wait():
    for _ in range({WAITS}):
        time.sleep(0.001)
print("ready", flush=True)
input()
thread = threading.Thread(target=wait)
thread.start()
thread.join()
print("done", flush=True)
input()
"""
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


def test_a_family_counts_a_child_that_ended() -> None:
    spin = "import time; sum(range(6_000_000)); print(time.process_time_ns(), flush=True)"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spin!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", f"{nested}; print('ended', flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        told_ns = int(parent.stdout.readline())
        assert parent.stdout.readline() == "ended\n"
        own, whole = cpu_ns(parent.pid), family_ns(parent.pid)
        assert own is not None
        assert whole is not None
        parent.communicate("\n")
    # The kernel counts the child's time in ticks of 10 ms.
    assert whole - own > told_ns / 2
    assert family_ns(parent.pid) is None


def test_an_ended_process_has_no_cpu_time() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    meter = CpuMeter([child.pid])
    child.wait()
    assert meter.read_ns() == UNKNOWN_NS


def test_two_processes_on_one_cpu_wait_for_each_other() -> None:
    """Each is asked to count until the other one must have waited for it."""
    pin = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})"
    spin = [sys.executable, "-c", f"{pin}; print(flush=True)\nwhile True: pass"]
    with (
        subprocess.Popen(spin, stdout=subprocess.PIPE) as one,
        subprocess.Popen(spin, stdout=subprocess.PIPE) as other,
    ):
        try:
            for child in (one, other):
                assert child.stdout is not None
                child.stdout.readline()
            queues = [QueueMeter([child.pid]) for child in (one, other)]
            first = [queue.read_ns() for queue in queues]
            waited = [0, 0]
            while min(waited) <= 0:
                waited = [waited_ns(of, q.read_ns()) for of, q in zip(first, queues, strict=True)]
        finally:
            for child in (one, other):
                child.kill()
    assert waited_ns(first[0], queues[0].read_ns()) == UNKNOWN_NS


def test_a_thread_that_is_new_counts_from_its_start() -> None:
    assert waited_ns({"1": 50, "2": 7}, {"1": 60, "3": 5}) == 15
    assert waited_ns({"1": 50}, {}) == UNKNOWN_NS


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


def played(source: str) -> tuple[FamilyUsage, str]:
    """What a program did between two lines, and the second line."""
    with subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin
        assert program.stdout
        assert program.stdout.readline() == "ready\n"
        with watched(program.pid) as usage:
            program.stdin.write("\n")
            program.stdin.flush()
            said = program.stdout.readline()
        program.communicate("\n")
    return usage, said


def test_switches_of_a_thread_that_ended_are_counted() -> None:
    usage, said = played(PROGRAM)
    assert said == "done\n"
    threads = usage.threads()
    assert len(threads) == 2
    # The last look at a thread is some waits before its end.
    assert WAITS / 2 <= max(each.switches for each in threads) <= WAITS * 1.2
    assert sum(each.run_ns for each in threads) > 0


def test_a_program_that_ended_has_done_nothing() -> None:
    with subprocess.Popen(["true"]) as program:
        pass
    with watched(program.pid) as usage:
        pass
    assert (usage.threads(), usage.faults_of_last(1)) == ([], None)


# A play with a fresh page in each millisecond, after many at once, as a worker gets its memory.
FAULTING = """
import mmap, time
pages, held = mmap.PAGESIZE, mmap.mmap(-1, 20_000 * mmap.PAGESIZE)
print("ready", flush=True)
input()
for number in range(10_000):
    held[number * pages] = 1
began, number = time.monotonic_ns(), 10_000
while (now := time.monotonic_ns() - began) < 1_500_000_000:  # some readings, on a busy machine too
    while now // 1_000_000 > number - 10_000:
        held[number * pages] = 1
        number += 1
print(now, number - 10_000, flush=True)
input()
"""


def test_page_faults_before_a_play_are_not_its_own() -> None:
    usage, said = played(FAULTING)
    elapsed_ns, touched = map(int, said.split())
    assert usage.faults_of_last(elapsed_ns) == pytest.approx(touched, rel=0.5)
