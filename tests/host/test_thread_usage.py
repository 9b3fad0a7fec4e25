"""What threads of a program did is known, of those too that end while it is watched."""

from __future__ import annotations

import subprocess
import sys

from cachemark.host.thread_usage import watched

WAITS = 200
# A thread that waits for pipes, ends, and leaves the main thread: it touches fresh pages.
PROGRAM = f"""
import os, threading, time
def wait():
    for _ in range({WAITS}):
        time.sleep(0.001)
print("ready", flush=True)
input()
thread = threading.Thread(target=wait)
thread.start()
thread.join()
held = bytearray(os.sysconf("SC_PAGE_SIZE") * 1000)
sum(held[::4096])
print("done", flush=True)
input()
"""


def test_switches_of_a_thread_that_ended_and_faults_are_counted() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin
        assert program.stdout
        assert program.stdout.readline() == "ready\n"
        with watched(program.pid) as usage:
            program.stdin.write("\n")
            program.stdin.flush()
            assert program.stdout.readline() == "done\n"
        program.communicate("\n")
    threads = usage.threads()
    assert len(threads) == 2
    # The last look at a thread is some waits before its end.
    assert WAITS / 2 <= max(each.switches for each in threads) <= WAITS * 1.2
    assert usage.faults >= 900
    assert sum(each.run_ns for each in threads) > 0


def test_a_program_that_ended_has_done_nothing() -> None:
    with subprocess.Popen(["true"]) as program:
        pass
    with watched(program.pid) as usage:
        pass
    assert (usage.threads(), usage.faults) == ([], 0)
