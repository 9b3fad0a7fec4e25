"""Files and lines that are written completely or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cachemark.host.atomic_file import append_lines, made_folder, write_files


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
