"""System calls, counted by strace of a small program, between two instants."""

import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from cachemark.host.system_calls import SystemCalls, calls_between, missing_reason, traced

needs_strace = pytest.mark.skipif(bool(missing_reason()), reason="apt-get install strace")

# It prints the instants around what is to be counted.
PROGRAM = textwrap.dedent(
    """
    import os, select, socket, threading, time
    one, other = socket.socketpair()
    reading, writing = os.pipe()
    poll = select.poll()
    poll.register(other, select.POLLIN)
    one.send(b"before")
    other.recv(100)
    began = time.time()
    os.stat("/")  # before the first request
    for _ in range(5):
        one.send(b"0123456789")
        poll.poll(0)
        other.recv(4)
        other.recv(6)
    other.setblocking(False)
    for _ in range(3):
        try:
            other.recv(1)
        except BlockingIOError:
            pass
    for _ in range(7):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    os.write(writing, b"x")
    os.read(reading, 1)
    os.stat("/")
    thread = threading.Thread(target=lambda: [os.write(writing, b"x") for _ in range(11)])
    thread.start()
    thread.join()
    one.send(b"last")
    os.stat("/")  # after it
    ended = time.time()
    one.send(b"after")
    print(began, ended)
    """
)


@needs_strace
def test_calls_are_counted_by_kind_in_all_threads(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = traced([sys.executable, "-c", PROGRAM], log)
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    began_s, ended_s = map(float, printed.split())
    calls = calls_between(log, began_s, ended_s)
    found = {name: calls.counts[name] for name in ("sends", "recvs", "empty_recvs", "polls")}
    assert found == {"sends": 6, "recvs": 13, "empty_recvs": 3, "polls": 5}
    assert [calls.counts[name] for name in ("wakes", "files", "connects")] == [2 + 11, 1, 0]
    # Python makes a socket non-blocking by an ioctl.
    assert calls.counts["options"] == 7 + 1
    whole = calls_between(log, 0, ended_s + 3600)
    assert (whole.counts["sends"], whole.counts["recvs"]) == (8, 14)


def test_a_call_that_another_thread_interrupts_is_counted_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "10 5.0 recvfrom(4<socket:[9]>,  <unfinished ...>\n"
        "11 5.1 futex(0x7, FUTEX_WAKE_PRIVATE, 1) = 0\n"
        '10 5.2 <... recvfrom resumed>"", 100, 0, NULL, NULL) = -1 EAGAIN (Resource …)\n'
        '10 5.3 write(5<anon_inode:[eventfd]>, ""..., 8) = 8\n'
        '10 5.4 writev(4<socket:[9]>, [{iov_base=""..., iov_len=3}], 1) = 3\n'
        "11 9.0 timerfd_settime(6, 0, {}, NULL) = 0\n"
    )
    assert calls_between(log, 5.0, 9.0) == SystemCalls(
        counts=Counter(recvs=1, empty_recvs=1, futexes=1, wakes=1, sends=1),
        by_thread={"10": 3},
    )


def test_calls_on_standard_streams_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        '10 5.0 read(0<pipe:[7]>, ""..., 100) = 9\n'
        '10 5.1 write(1<pipe:[8]>, ""..., 9) = 9\n'
        '10 5.2 write(10<pipe:[9]>, ""..., 9) = 9\n'
    )
    assert calls_between(log, 5.0, 6.0) == SystemCalls(counts=Counter(wakes=1), by_thread={"10": 1})


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("", "strace is not installed: apt-get install strace"),
        (
            "#!/bin/sh\necho 'strace: Operation not permitted' >&2\nexit 1\n",
            "Operation not permitted: the kernel or the container refuses ptrace",
        ),
    ],
)
def test_a_machine_that_cannot_trace_gives_the_reason(
    program: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if program:
        (tmp_path / "strace").write_text(program)
        (tmp_path / "strace").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing_reason.__wrapped__().endswith(reason)
