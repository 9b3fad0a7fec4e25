"""Files that options name: devices and links stay, and nothing is half-written."""

import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from cachemark.host import process
from tests.cli.unwritable import SENTENCE_LINES, cachemark, copy_of, ended, store

__all__ = ["store"]


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
    status, said = cachemark(["report", "--format", form, "--out", "out"], folder)
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
    assert cachemark([*arguments, "--out", "link"], folder)[0] == 0
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") != "before"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    status, said = cachemark([*arguments, "--out", "/proc/self/nowhere"], folder)
    assert status == 2
    assert len(said.splitlines()) <= SENTENCE_LINES
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_links_in_a_circle_are_a_sentence(store: Path, tmp_path: Path) -> None:
    folder = copy_of(store, tmp_path)
    (folder / "loop").symlink_to("loop")
    tape = [process.binary_path(), "tape", "write", "--out", "loop"]
    for status, said in (
        cachemark(["report", "--format", "csv", "--out", "loop"], folder),
        ended(tape, folder, subprocess.DEVNULL),
    ):
        assert status == 2
        assert len(said.splitlines()) <= SENTENCE_LINES, said


def test_a_drive_that_fails_leaves_the_file_of_another(tmp_path: Path) -> None:
    before = tmp_path / "x.hgrm"
    before.write_text("before", encoding="utf-8")
    command = [process.binary_path(), "drive", "--server", "127.0.0.1:1", "--quiet", "--hgrm"]
    assert ended([*command, "x.hgrm"], tmp_path, subprocess.DEVNULL)[0] == 2
    assert before.read_text(encoding="utf-8") == "before"
    assert ended([*command, "new.hgrm"], tmp_path, subprocess.DEVNULL)[0] == 2
    assert list(tmp_path.iterdir()) == [before]


@pytest.mark.parametrize("word", [b"\xff", b"results/\xff"])
def test_a_name_that_is_not_text(store: Path, tmp_path: Path, word: bytes) -> None:
    folder = copy_of(store, tmp_path)
    for verb in ("report", "history", "run", "explain", "compare"):
        status, said = cachemark([verb, os.fsdecode(word)], folder)
        assert status in (0, 2), said
        assert "Traceback" not in said
        assert len(said.splitlines()) <= SENTENCE_LINES, said


@pytest.mark.parametrize("verb", [["report"], ["history"], ["export", "2026-made", "x.zip"]])
def test_a_folder_in_place_of_a_file(store: Path, tmp_path: Path, verb: list[str]) -> None:
    folder = copy_of(store, tmp_path)
    outcomes = folder / "results" / "2026-made" / "outcomes.jsonl"
    outcomes.unlink()
    outcomes.mkdir()
    status, said = cachemark(verb, folder)
    assert status in (0, 2)
    assert len(said.splitlines()) <= SENTENCE_LINES


def test_an_id_that_is_too_long(store: Path) -> None:
    status, said = cachemark(["report", "x" * 5000], store)
    assert status == 2
    assert len(said) < 1000


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "--format", "csv", "--out"],
        ["report", "--format", "html", "--out"],
        ["export", "RUN"],
    ],
    ids=" ".join,
)
def test_a_name_that_is_too_long_is_bad_input(
    store: Path, tmp_path: Path, arguments: list[str]
) -> None:
    """It ended with 1, as what has failed."""
    folder = copy_of(store, tmp_path)
    (run,) = (path.parent.name for path in folder.glob("results/*/run.json"))
    words = [word.replace("RUN", run) for word in arguments]
    status, said = cachemark([*words, "n" * 300], folder)
    assert status == 2, said
    assert "cannot be written" in said
