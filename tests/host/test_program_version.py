"""The commit that `--version` shows is read without git, in a checkout and in a worktree."""

import platform
import re
import subprocess
from pathlib import Path

import pytest

from cachemark import __version__
from cachemark.host import program_version
from cachemark.host.process import ENGINE, binary_path
from cachemark.host.program_version import checkout_commit, version_text

COMMIT, OTHER = "0123456789abcdef" * 2 + "01234567", "f" * 40


@pytest.fixture
def git_folder(tmp_path: Path) -> Path:
    """`.git` of a checkout whose branch is `main`."""
    folder = tmp_path / "checkout" / ".git"
    (folder / "refs" / "heads").mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    return folder


def test_a_branch(git_folder: Path) -> None:
    (git_folder / "refs" / "heads" / "main").write_text(f"{COMMIT}\n", encoding="utf-8")
    assert checkout_commit(git_folder.parent) == COMMIT


def test_a_branch_that_git_has_packed(git_folder: Path) -> None:
    packed = f"# pack-refs with: peeled\n{OTHER} refs/heads/a-main\n{COMMIT} refs/heads/main\n"
    (git_folder / "packed-refs").write_text(packed, encoding="utf-8")
    assert checkout_commit(git_folder.parent) == COMMIT


def test_no_branch(git_folder: Path) -> None:
    (git_folder / "HEAD").write_text(f"{COMMIT}\n", encoding="utf-8")
    assert checkout_commit(git_folder.parent) == COMMIT


def test_a_worktree(git_folder: Path, tmp_path: Path) -> None:
    own = git_folder / "worktrees" / "other"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/topic\n", encoding="utf-8")
    (own / "commondir").write_text("../..\n", encoding="utf-8")
    (git_folder / "refs" / "heads" / "topic").write_text(COMMIT, encoding="utf-8")
    worktree = tmp_path / "other"
    worktree.mkdir()
    (worktree / ".git").write_text(f"gitdir: {own}\n", encoding="utf-8")
    assert checkout_commit(worktree) == COMMIT


def test_no_repository_and_a_branch_without_commits(git_folder: Path, tmp_path: Path) -> None:
    assert checkout_commit(tmp_path) == ""
    assert checkout_commit(git_folder.parent) == ""


def test_a_package_has_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "commit.txt").write_text(f"{COMMIT}\n", encoding="utf-8")
    monkeypatch.setattr(program_version, "_PACKAGE", tmp_path)
    python = platform.python_version()
    assert version_text() == f"cachemark {__version__} (0123456789ab, package; Python {python})"


def test_both_programs_say_version_commit_and_build() -> None:
    assert re.fullmatch(
        rf"cachemark {re.escape(__version__)} \((\w{{12}}|commit unknown), (checkout|package); "
        r"Python 3\.\S+\)",
        version_text(),
    )
    said = subprocess.run([binary_path(), "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(
        rf"{ENGINE} {re.escape(__version__)} \((\w{{12}}( modified)?|commit unknown), "
        r"(checkout|package); (release|debug), \w+-unknown-linux-\w+, rustc 1\.\S+\)\n",
        said.stdout,
    )
