"""Every verb of both programs, where its output cannot be written: one sentence, exit 1 or 2."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cachemark.cli import app
from cachemark.endpoints.servers import parse_spec, running
from cachemark.host import process
from cachemark.host.temporary import temporary_folder
from cachemark.runs.storage.archive import export_run
from tests.builders.stored_runs import kept, made_header, trials
from tests.conftest import ROOT

VERBS = [name for name in app if not name.startswith("-")]
# Arguments that print something, and need neither servers nor set-ups.
PRINTING = [
    ["report"],
    ["report", "--format", "json"],
    ["history"],
    ["history", "a"],
    ["compare", "--client", "a", "--client", "b"],
    ["export", "2026-made", "made.zip"],
    ["import", "run.zip", "--runs", "elsewhere"],
    ["suites"],
    ["clients"],
    ["servers"],
    ["protocol"],
    ["run", "quick", "--client", "native", "--client", "reference", "--dry-run"],
]
ENGINE = [["tape", "presets"], ["tape", "presets", "--json"], ["tape", "write", "--out", "t"]]
SENTENCE_LINES = 2


def full() -> int:
    return os.open("/dev/full", os.O_WRONLY)


def broken_pipe() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def unwritable() -> int:
    return os.open(os.devnull, os.O_RDONLY)


OUTPUTS: dict[str, Callable[[], int]] = {
    "full": full, "pipe": broken_pipe, "closed": unwritable,
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    outcomes = [*trials("a", 500, 2), *trials("b", 400, 2)]
    run = kept(folder / "results", made_header("2026-made"), outcomes)
    export_run(run, folder / "run.zip")
    return folder


@pytest.fixture(scope="module")
def one_language(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of workers that has the reference worker only."""
    folder = tmp_path_factory.mktemp("workers")
    (folder / "reference").symlink_to(ROOT / "workers" / "reference")
    return folder


@pytest.fixture(autouse=True)
def _few_workers(one_language: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`clients` starts every worker, to ask for its version."""
    monkeypatch.setenv("CACHEMARK_WORKERS", str(one_language))


def ended(command: list[str], folder: Path, stdout: int, **environment: str) -> tuple[int, str]:
    """The exit status of a program and what it printed on stderr."""
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        check=False,
    )
    return done.returncode, done.stderr.decode("utf-8", "replace")


def refused(command: list[str], folder: Path, output: Callable[[], int]) -> None:
    """It says in a sentence that it cannot write."""
    stdout = output()
    try:
        status, said = ended(command, folder, stdout)
    finally:
        os.close(stdout)
    assert status in (1, 2), said
    assert said.strip()
    assert len(error_lines(said)) <= SENTENCE_LINES, said
    assert "Traceback" not in said
    assert "panicked" not in said


def error_lines(said: str) -> list[str]:
    """The error, without what a verb prints on stderr before it."""
    lines = said.splitlines()
    first = (at for at, line in enumerate(lines) if line.startswith("cachemark"))
    return lines[next(first, 0) :]


def copy_of(store: Path, tmp_path: Path) -> Path:
    subprocess.run(["cp", "-r", f"{store}/.", tmp_path], check=True)
    return tmp_path


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_cachemark(store: Path, tmp_path: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "cachemark", *arguments]
    refused(command, copy_of(store, tmp_path), full)


@pytest.mark.parametrize("output", ["pipe", "closed"])
@pytest.mark.parametrize("arguments", [["history"], ["clients"]], ids=" ".join)
def test_pipes_and_closed_streams(store: Path, arguments: list[str], output: str) -> None:
    refused([sys.executable, "-m", "cachemark", *arguments], store, OUTPUTS[output])


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb(tmp_path: Path, verb: str) -> None:
    refused([sys.executable, "-m", "cachemark", verb, "--help"], tmp_path, full)


@pytest.mark.parametrize("output", ["full", "pipe"])
@pytest.mark.parametrize("arguments", ENGINE, ids=" ".join)
def test_engine(tmp_path: Path, arguments: list[str], output: str) -> None:
    refused([process.binary_path(), *arguments], tmp_path, OUTPUTS[output])


@pytest.mark.parametrize("output", ["full", "pipe"])
@pytest.mark.parametrize("more", [[], ["--json"]], ids=str)
def test_drive(tmp_path: Path, more: list[str], output: str) -> None:
    with running(parse_spec("embedded")) as server:
        address = server.addresses[0]
        load = ["--server", address, "--keys", "10", "--warmup", "0s", "--duration", "10ms"]
        refused(
            [process.binary_path(), "drive", "--quiet", *load, *more], tmp_path, OUTPUTS[output]
        )


@pytest.mark.parametrize(
    "options",
    [["--depth", "1000000000"], ["--connections", "4294967295"], ["--threads", "1000000"]],
    ids=" ".join,
)
def test_drive_refuses_absurd_numbers(tmp_path: Path, options: list[str]) -> None:
    command = [process.binary_path(), "drive", "--server", "127.0.0.1:1", *options]
    status, said = ended(command, tmp_path, subprocess.DEVNULL)
    assert status == 2
    assert "at most" in said
    assert len(said.splitlines()) == 1


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


def device(path: Path) -> None:
    """A device of the kind of /dev/full; without the rights for that, a pipe that has a reader."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, Path("/dev/full").stat().st_rdev)
    except PermissionError:
        os.mkfifo(path)
        threading.Thread(target=path.read_bytes, daemon=True).start()


@pytest.mark.parametrize("form", ["csv", "html", "picture"])
def test_out_does_not_replace_a_device(store: Path, tmp_path: Path, form: str) -> None:
    folder = copy_of(store, tmp_path)
    device(folder / "out")
    kind = stat.S_IFMT((folder / "out").lstat().st_mode)
    command = [sys.executable, "-m", "cachemark", "report", "--format", form, "--out", "out"]
    status, said = ended(command, folder, subprocess.DEVNULL)
    assert stat.S_IFMT((folder / "out").lstat().st_mode) == kind
    assert status == (2 if kind == stat.S_IFCHR else 0), said
    assert "Traceback" not in said


def test_a_tape_does_not_replace_a_device(tmp_path: Path) -> None:
    device(tmp_path / "out")
    kind = stat.S_IFMT((tmp_path / "out").lstat().st_mode)
    command = [process.binary_path(), "tape", "write", "--out", "out", "--keys", "10"]
    status, said = ended(command, tmp_path, subprocess.DEVNULL)
    assert stat.S_IFMT((tmp_path / "out").lstat().st_mode) == kind
    assert status == (2 if kind == stat.S_IFCHR else 0), said


@pytest.mark.parametrize("arguments", [["report", "--format", "csv"], ["history"]], ids=" ".join)
def test_out_is_written_completely_or_not_at_all(
    store: Path, tmp_path: Path, arguments: list[str]
) -> None:
    folder = copy_of(store, tmp_path)
    link, target = folder / "link", folder / "target"
    target.write_text("before", encoding="utf-8")
    target.chmod(0o600)
    link.symlink_to(target)
    command = [sys.executable, "-m", "cachemark", *arguments, "--out"]
    assert ended([*command, "link"], folder, subprocess.DEVNULL)[0] == 0
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") != "before"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    status, said = ended([*command, "/proc/self/nowhere"], folder, subprocess.DEVNULL)
    assert status == 2
    assert len(said.splitlines()) <= SENTENCE_LINES
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("verb", [["report"], ["history"], ["export", "2026-made", "x.zip"]])
def test_a_folder_in_place_of_a_file(store: Path, tmp_path: Path, verb: list[str]) -> None:
    folder = copy_of(store, tmp_path)
    outcomes = folder / "results" / "2026-made" / "outcomes.jsonl"
    outcomes.unlink()
    outcomes.mkdir()
    status, said = ended([sys.executable, "-m", "cachemark", *verb], folder, subprocess.DEVNULL)
    assert status in (0, 2)
    assert len(said.splitlines()) <= SENTENCE_LINES


def test_an_id_that_is_too_long(store: Path) -> None:
    command = [sys.executable, "-m", "cachemark", "report", "x" * 5000]
    status, said = ended(command, store, subprocess.DEVNULL)
    assert status == 2
    assert len(said) < 1000


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


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_ends_a_run_in_order(tmp_path: Path, number: signal.Signals) -> None:
    """Its servers and workers end, its folders are removed, and it says how to go on."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    # Under nohup the tests ignore SIGHUP, and a run that inherits that ignores it too.
    default_signals = ["env", "--default-signal=HUP,TERM"]
    command = ["run", "quick", "--client", "native", "--server", "embedded"]
    more = ["--blocks", "500", "--measure-ms", "50"]
    with subprocess.Popen(
        [*default_signals, sys.executable, "-m", "cachemark", *command, *more],
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
        said = running.stderr.read()
    assert running.returncode == 130
    assert "interrupted" in said
    assert list(temporary.iterdir()) == []
