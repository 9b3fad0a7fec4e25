"""No child process is left behind, whatever happens to it or to its parent."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachemark.analysis.verdict.long_pauses import long_pause_findings
from cachemark.host import process
from cachemark.host.noise import NoiseMonitor, is_stopped
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Load
from tests.builders.outcomes import measured

MS = 1_000_000
DEADLINE_S = 20.0
FOREVER = "import signal; signal.pause()"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def gone(pid: int) -> bool:
    """Whether a process ends within the deadline; it may be anyone's child."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(DEADLINE_S * 1e3))
    finally:
        os.close(handle)


def first_line(child: process.Child) -> str:
    assert child.popen.stdout is not None
    return child.popen.stdout.readline().decode().strip()


def test_a_child_that_obeys_sigterm_ends_by_it() -> None:
    with process.start(python(FOREVER)) as child:
        assert child.exited() is None
        child.stop()
        assert child.exited() == -signal.SIGTERM
    assert gone(child.pid)


def test_a_child_that_is_stopped_ends_by_sigterm() -> None:
    with process.start(python(FOREVER)) as child:
        os.killpg(child.pid, signal.SIGSTOP)
        child.stop(grace_s=DEADLINE_S)
        assert child.exited() == -signal.SIGTERM
    assert gone(child.pid)


def test_a_child_that_ignores_sigterm_is_killed() -> None:
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True)"
    with process.start(python(f"{code}; {FOREVER}"), stdout=subprocess.PIPE) as child:
        assert first_line(child) == "1"
        child.stop(grace_s=0.05)
        assert child.exited() == -signal.SIGKILL


@pytest.mark.parametrize("leader", [FOREVER, "pass"])
def test_the_group_is_killed_although_its_leader_has_ended(leader: str) -> None:
    code = (
        "import subprocess, sys; "
        f"p = subprocess.Popen([sys.executable, '-c', {FOREVER!r}], stdout=subprocess.DEVNULL); "
        f"print(p.pid, flush=True); {leader}"
    )
    with process.start(python(code), stdout=subprocess.PIPE) as child:
        grandchild = int(first_line(child))
        if leader == "pass":
            assert child.wait(DEADLINE_S)
            assert child.exited() == 0
    assert gone(grandchild)


def test_reading_the_status_does_not_reap() -> None:
    with process.start(python("raise SystemExit(7)")) as child:
        assert child.wait(DEADLINE_S)
        assert [child.exited(), child.exited()] == [7, 7]
        # A zombie keeps its id, so no stranger's group can be killed in its place.
        os.kill(child.pid, 0)
    assert child.exited() == 7
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


def test_waiting_returns_false_after_the_time_out() -> None:
    with process.start(python(FOREVER)) as child:
        assert not child.wait(0.01)


@pytest.mark.parametrize("_again", range(5))
def test_a_killed_parent_leaves_no_child(_again: int) -> None:
    code = (
        "import sys; from cachemark.host import process; "
        f"c = process.start([sys.executable, '-c', {FOREVER!r}]); "
        f"print(c.pid, flush=True); {FOREVER}"
    )
    with subprocess.Popen(python(code), stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        ended = gone(child)
        if not ended:
            os.kill(child, signal.SIGKILL)
    assert ended


def test_a_child_starts_on_its_cpus_and_ours_are_unchanged() -> None:
    before = os.sched_getaffinity(0)
    cpu = max(before)
    code = "import os; print(sorted(os.sched_getaffinity(0)), flush=True)"
    with process.start(python(code), cpus=str(cpu), stdout=subprocess.PIPE) as child:
        assert first_line(child) == str([cpu])
    assert os.sched_getaffinity(0) == before


def test_our_cpus_are_unchanged_after_a_failed_start() -> None:
    before = os.sched_getaffinity(0)
    with pytest.raises(FileNotFoundError, match="no such program"):
        process.start(["/nonexistent/program"], cpus=str(min(before)))
    assert os.sched_getaffinity(0) == before


def test_the_logs_end_can_be_read_after_the_child_ended() -> None:
    code = "import sys; sys.stderr.write('x' * 100_000 + 'the end')"
    with process.start(python(code)) as child:
        assert child.wait(DEADLINE_S)
        tail = child.log_tail()
    assert tail.endswith("the end")
    assert len(tail) == 16 * 1024
    assert child.log_tail() == tail


@pytest.mark.parametrize(
    ("stderr", "words"),
    [
        ("", ""),
        ("no room\n\n", "no room"),
        ("Traceback:\n  File x\nValueError: no such key\n", "ValueError: no such key"),
        ("error: no --such\n\n  tip: none\n\nFor more, try '--help'.\n", "error: no --such"),
        ("Exception in thread main: Gone\n\tat a.b(c:1)\n", "Exception in thread main: Gone"),
        ("  " + "x" * 300, "x" * 200),
    ],
)
def test_the_last_line_of_stderr_is_the_reason(stderr: str, words: str) -> None:
    with process.start(python(f"import sys; sys.stderr.write({stderr!r})")) as child:
        assert child.wait(DEADLINE_S)
        assert child.last_stderr_line() == words


def test_environment_variables_are_added_to_ours() -> None:
    code = "import os; print(os.environ['CACHEMARK_X'], 'PATH' in os.environ, flush=True)"
    started = process.start(python(code), env={"CACHEMARK_X": "1"}, stdout=subprocess.PIPE)
    with started as child:
        assert first_line(child) == "1 True"


def test_cpu_time_includes_ended_threads() -> None:
    code = (
        "import threading, time\n"
        "def burn():\n"
        "    while time.thread_time() < 0.2: pass\n"
        "t = threading.Thread(target=burn); t.start(); t.join()\n"
        "print(1, flush=True); input()"
    )
    pipe = subprocess.PIPE
    with process.start(python(code), stdin=pipe, stdout=pipe) as child:
        assert first_line(child) == "1"
        used = process.cpu_ns(child.pid)
        assert used is not None
        assert used >= 200_000_000
    assert process.cpu_ns(child.pid) is None


@given(st.sets(st.integers(0, 9999), min_size=1, max_size=20))
def test_a_printed_list_of_cpus_is_parsed_back(cpus: set[int]) -> None:
    assert process.parse_cpus(",".join(map(str, cpus))) == cpus


@given(st.integers(0, 500), st.integers(0, 500))
def test_ranges_of_cpus_are_parsed(low: int, length: int) -> None:
    assert process.parse_cpus(f"{low}-{low + length}") == set(range(low, low + length + 1))


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "0,,1", "0-99999999999", "1 2", "²"])
def test_malformed_sets_of_cpus_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a set of CPUs"):
        process.parse_cpus(text)


@given(st.text(alphabet="0123456789,- x", max_size=12))
def test_any_text_is_a_set_of_cpus_or_an_error(text: str) -> None:
    assert _cpus_or_remedy(text)


def _cpus_or_remedy(text: str) -> set[int] | str:
    try:
        return process.parse_cpus(text)
    except UsageError as error:
        return error.remedy


def test_the_environment_names_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHEMARK_ENGINE", sys.executable)
    assert process.binary_path() == sys.executable
    monkeypatch.setenv("CACHEMARK_ENGINE", "/nonexistent/engine")
    with pytest.raises(UsageError, match="no such program"):
        process.binary_path()


def test_a_missing_engine_is_an_error_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CACHEMARK_ENGINE", raising=False)
    monkeypatch.setattr(process, "ENGINE", "cachemark-engine-that-is-nowhere")
    with pytest.raises(UsageError) as caught:
        process.binary_path()
    assert "make setup" in caught.value.remedy


@pytest.fixture
def worker() -> Generator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        yield child
        child.kill()


def signalled(child: subprocess.Popen[bytes], number: signal.Signals, state: int) -> None:
    """Send a signal, and wait until the process is in that state."""
    child.send_signal(number)
    os.waitid(os.P_PID, child.pid, state | os.WNOWAIT)


def test_a_stopped_fork_of_a_worker_is_found(tmp_path: Path) -> None:
    for pid, state, forks in ((1, "S", "2 3"), (2, "R", ""), (3, "T", ""), (4, "S", "2")):
        folder = tmp_path / f"proc/{pid}"
        (folder / f"task/{pid}").mkdir(parents=True)
        (folder / "stat").write_text(f"{pid} (a worker) {state} 0 0")
        (folder / f"task/{pid}/children").write_text(forks)
    assert [pid for pid in range(1, 6) if is_stopped(pid, tmp_path)] == [1, 3]


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_process_that_was_stopped_is_a_long_pause(
    worker: subprocess.Popen[bytes], side: str
) -> None:
    noise = NoiseMonitor()
    noise.start(*([worker.pid], []) if side == "client" else ([], [worker.pid]))
    noise.pauses.slept(400 * MS, 400 * MS)
    signalled(worker, signal.SIGSTOP, os.WSTOPPED)
    noise.pauses.slept(100 * MS, 100 * MS)
    noise.pauses.slept(100 * MS, 100 * MS)
    signalled(worker, signal.SIGCONT, os.WCONTINUED)
    noise.pauses.slept(400 * MS, 400 * MS)
    seen = noise.stop()
    assert {seen.stopped_ns, seen.server_stopped_ns} == {0, 200 * MS}
    measure = measured("a", 0, 1000).measure
    assert measure is not None
    second = msgspec.structs.replace(measure, elapsed_ns=1000 * MS)
    (found,) = long_pause_findings(seen, second, Load(name="one"))
    assert (found.rule, found.weight) == ("long-pause", "INVALID")
    assert f"the {side} was stopped for 0.2 s" in found.text


def test_a_stop_is_seen_while_other_threads_wait(worker: subprocess.Popen[bytes]) -> None:
    noise = NoiseMonitor()
    noise.start([], [worker.pid])
    with noise.watching():
        signalled(worker, signal.SIGSTOP, os.WSTOPPED)
        while not noise.pauses.server_stopped_ns:
            os.sched_yield()
        signalled(worker, signal.SIGCONT, os.WCONTINUED)
    assert noise.stop().server_stopped_ns >= 100 * MS


@pytest.mark.parametrize(("waited_ns", "halted_ns"), [(0, 300 * MS), (290 * MS, 10 * MS)])
def test_a_process_that_waits_for_a_cpu_does_not_halt(
    tmp_path: Path, waited_ns: int, halted_ns: int
) -> None:
    thread = tmp_path / f"proc/{os.getpid()}/task/1"
    thread.mkdir(parents=True)
    (thread / "schedstat").write_text("1000 5000 1\n")
    noise = NoiseMonitor(tmp_path)
    noise.start([], [])
    (thread / "schedstat").write_text(f"1000 {5000 + waited_ns} 2\n")
    noise.pauses.slept(100 * MS, 400 * MS)
    seen = noise.stop()
    assert (seen.longest_pause_ns, seen.longest_halt_ns) == (300 * MS, halted_ns)
