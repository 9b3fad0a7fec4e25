"""When a cell of the resilience matrix may end, and that an ended run leaves no process behind."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cachemark.runs.resilience.window import Look, healthy_since_ns, may_end

_S = 1_000_000_000
pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)
_PATIENCE_S = 60.0
_MARK = "CACHEMARK_TEST_OF_ENDS"


def marked(name: str) -> Iterator[Path]:
    """The folders in /proc of the processes whose environment has the mark."""
    wanted = f"{_MARK}={name}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                yield folder
        except OSError:
            continue


def is_frozen(folder: Path) -> bool:
    try:
        return (folder / "stat").read_text().rpartition(") ")[2].startswith("T")
    except OSError:
        return False


def wait_for(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.05)


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda n: n.name
)
def test_nothing_outlives_a_run_with_a_frozen_server(
    number: signal.Signals, tmp_path: Path
) -> None:
    """Two cells are played: one with a frozen server, and one with a proxy."""
    command = [sys.executable, "-m", "cachemark", "resilience", "native", "--jobs", "2"]
    command += ["--profile", "common", "--sittings", "1"]
    command += ["--faults", "frozen-10s", "--faults", "half-open"]
    name = str(tmp_path)
    run = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, _MARK: name})
    try:
        wait_for(lambda: any(map(is_frozen, marked(name))), "no server was frozen")
        assert len(list(marked(name))) >= 6, "a run, two clients, two servers and a proxy"
        run.send_signal(number)
        run.wait(_PATIENCE_S)
        wait_for(lambda: not any(marked(name)), "processes are left")
    finally:
        for folder in [*marked(name)]:
            os.kill(int(folder.name), signal.SIGKILL)
        run.wait()
    if number != signal.SIGKILL:
        assert run.returncode == 130


def looks(*steps: tuple[int, int, int]) -> list[Look]:
    """A look each second: calls, errors and executed calls since the one before."""
    made = [Look(0, 0, 0, 0)]
    for ops, errors, answered in steps:
        last = made[-1]
        made.append(
            Look(last.at_ns + _S, last.ops + ops, last.errors + errors, last.answered + answered)
        )
    return made


GOOD = (400, 0, 400)


def test_it_ends_after_the_client_was_well_for_seconds() -> None:
    assert not may_end(looks(GOOD, GOOD), 0, after_ms=1000, share=0.9)
    assert may_end(looks(GOOD, GOOD, GOOD), 0, after_ms=1000, share=0.9)
    assert not may_end(looks(GOOD, GOOD, GOOD), 0, after_ms=5000, share=0.9)


def test_an_error_begins_the_count_again() -> None:
    seen = looks(GOOD, GOOD, (399, 1, 400), GOOD)
    assert healthy_since_ns(seen, 0.9) == 3 * _S
    assert healthy_since_ns(looks(GOOD, (399, 1, 400)), 0.9) is None


def test_misses_that_reach_no_server_are_not_well() -> None:
    assert healthy_since_ns(looks((400, 0, 0)), 0.9) is None
    assert healthy_since_ns(looks((400, 0, 120)), 0.1) == 0, "one of three servers"


def test_a_client_that_hardly_plays_is_not_well() -> None:
    assert healthy_since_ns(looks((20, 0, 20)), 0.9) is None
    assert healthy_since_ns([], 0.9) is None
    assert not may_end(looks(), 0, after_ms=0, share=0.9)
