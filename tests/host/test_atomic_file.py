"""Files and lines that are written completely or not at all, and temporary folders."""

import os
import socket
import tempfile
from pathlib import Path

import pytest

from cachemark.host.atomic_file import append_lines, made_folder, write_files
from cachemark.host.temporary import temporary_folder, temporary_socket

_LONGEST = 107
_BELOW = len("/cachemark-12345678/socket")


@pytest.mark.parametrize("before", [b"", b"one\n", b"one\nhalf a li", b"half a line"])
def test_a_line_is_appended_to_whole_lines_only(before: bytes, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(before)
    append_lines(path, b"next\n")
    assert path.read_bytes() == before[: before.rfind(b"\n") + 1] + b"next\n"


def test_lines_that_fail_leave_what_was_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(_: int) -> None:
        raise OSError("full")

    monkeypatch.setattr(os, "fsync", full)
    (tmp_path / "old").write_bytes(b"one\n")
    for name in ("old", "new"):
        with pytest.raises(OSError, match="full"):
            append_lines(tmp_path / name, b"next\n")
    assert (tmp_path / "old").read_bytes() == b"one\n"
    assert not (tmp_path / "new").exists()


def test_files_that_fail_together_leave_those_that_were_there(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_files(tmp_path, {"new": "new", "folder": "in place of a folder"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "old"]


def test_only_folders_that_were_made_go(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()

    def fail() -> None:
        with made_folder(tmp_path / "a/b/c"):
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fail()
    assert [path.name for path in tmp_path.rglob("*")] == ["a"]


@pytest.mark.parametrize("over", [0, 1, 100], ids=["fits", "one byte too long", "much too long"])
def test_a_socket_has_a_path_that_the_kernel_takes(
    monkeypatch: pytest.MonkeyPatch, over: int
) -> None:
    with temporary_folder(Path("/tmp")) as folder:  # short, wherever the tests have theirs
        root = folder / ("d" * (_LONGEST - _BELOW - len(f"{folder}/") + over))
        root.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(root))
        with temporary_socket() as path, socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
            assert path.is_relative_to(root) == (over == 0)
            assert len(os.fsencode(path)) == _LONGEST or over
        assert not path.parent.exists()
