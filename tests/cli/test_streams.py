"""Closed, full and odd standard streams; what killed and interrupted processes leave."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cachemark.host import process
from cachemark.host.temporary import temporary_folder
from tests.cli.in_process import Inside
from tests.cli.unwritable import broken_pipe, copy_of, ended, full, store

__all__ = ["store"]


@pytest.mark.parametrize("environment", ["ascii", "latin-1"])
def test_an_encoding_without_a_character(store: Path, tmp_path: Path, environment: str) -> None:
    command = [sys.executable, "-m", "cachemark", "report"]
    folder = copy_of(store, tmp_path)
    status, said = ended(
        command, folder, subprocess.DEVNULL,
        PYTHONUTF8="0", PYTHONIOENCODING=environment, LC_ALL="C",
    )  # fmt: skip
    assert (status, said) == (0, "")


def test_streams_that_are_closed(store: Path, tmp_path: Path) -> None:
    """The first file that a program opens must not become its stdout or stderr."""
    folder = copy_of(store, tmp_path)
    for closing in (">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"):
        shell = f'"{sys.executable}" -m cachemark history {closing}'
        status, said = ended(["sh", "-c", shell], folder, subprocess.DEVNULL)
        assert status == (1 if ">&-" in closing.replace("2>&-", "") else 0)
        assert "Traceback" not in said
    assert (folder / "results" / "index.sqlite").read_bytes().startswith(b"SQLite format 3")


@pytest.mark.parametrize(
    "words",
    [
        ["explain", "lost-without-reply"],
        ["new", "a-name-that-is-long-enough-for-a-second-line.toml"],
        ["resilience", "native", "--faults", "frozen-10s", "--dry-run"],
    ],
    ids=" ".join,
)
def test_a_narrow_terminal_gets_lines_between_words(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "60")
    lines = inside(*words).stdout.splitlines()
    assert len(lines) > 1
    assert all(len(line) <= 60 or line.startswith("cachemark run") for line in lines)


@pytest.mark.parametrize("arguments", [["report"], ["run", "quick", "--dry-run"]], ids=" ".join)
@pytest.mark.parametrize("output", [full, broken_pipe])
def test_the_work_goes_on_without_stderr(
    store: Path, tmp_path: Path, arguments: list[str], output: Callable[[], int]
) -> None:
    """Stderr says how far the work is, and why it failed: both can be done without."""
    folder = copy_of(store, tmp_path)
    words = [*arguments, "--client", "native", "--client", "reference"]
    for wanted, more in (
        (0, words if arguments[0] == "run" else arguments),
        (2, ["report", "none"]),
    ):
        stderr = output()
        command = [sys.executable, "-m", "cachemark", *more]
        done = subprocess.run(command, cwd=folder, capture_output=False, check=False,
                              stdout=subprocess.DEVNULL, stderr=stderr)  # fmt: skip
        os.close(stderr)
        assert done.returncode == wanted


@pytest.mark.parametrize("output", [full, broken_pipe])
def test_the_engine_goes_on_without_stderr(tmp_path: Path, output: Callable[[], int]) -> None:
    """A trace has warnings, a server has them in its threads."""
    # Of more than a hundredth that cannot be played, the trace would be refused.
    lines = "0,weird,k,1\n" + 200 * "1,get,k,1\n"
    (tmp_path / "t.csv").write_text(f"time,op,key,size\n{lines}", encoding="utf-8")
    stderr = output()
    command = [process.binary_path(), "tape", "write", "--out", "t", "--trace", "t.csv"]
    done = subprocess.run(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=stderr, check=False
    )
    os.close(stderr)
    assert done.returncode == 0
    assert (tmp_path / "t").stat().st_size


def test_the_folder_of_a_killed_process_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary_folder() as alive:
        child = os.fork()
        if not child:
            with temporary_folder() as folder:
                (folder / "tape").write_bytes(b"x")
                os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        assert len(list(tmp_path.iterdir())) == 2
        (tmp_path / "cachemark-other").mkdir()  # not ours: it has no lock
        with temporary_folder() as second:
            assert set(tmp_path.iterdir()) == {alive, second, tmp_path / "cachemark-other"}


@pytest.mark.parametrize(
    ("number", "launcher"),
    [(signal.SIGHUP, []), (signal.SIGTERM, []), (signal.SIGTERM, ["env", "--block-signal"])],
    ids=["SIGHUP", "SIGTERM", "SIGTERM that the parent blocks"],
)
def test_a_signal_ends_a_run_in_order(
    tmp_path: Path, number: signal.Signals, launcher: list[str]
) -> None:
    """Its servers and workers end, its folders are removed, and it says how to go on."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = ["run", "quick", "--client", "native", "--server", "embedded"]
    more = ["--blocks", "500", "--measure-ms", "50"]
    with subprocess.Popen(
        [*launcher, sys.executable, "-m", "cachemark", *command, *more],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        while "trial 1 of" not in (line := running.stderr.readline()):
            assert line
        with suppress(ProcessLookupError):
            running.send_signal(number)
        try:
            _, said = running.communicate(timeout=600)
        finally:
            running.kill()
    assert running.returncode == 130
    assert "interrupted" in said
    assert list(temporary.iterdir()) == []
