"""The CLI inside the test's own process: for verbs that start none, and are asked often."""

import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from cachemark import cli
from cachemark.host.facts import _version as _tell_version  # pyright: ignore[reportPrivateUsage]

COLOURS = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


class Said(NamedTuple):
    """How a verb ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


Inside = Callable[..., Said]


def _told_version(command: list[str]) -> str:
    """Each run asks eight programs, among them a JVM: a quarter of a second of CPU time."""
    return _told_once(shutil.which(command[0]), *command)


@cache
def _told_once(_path: str | None, *command: str) -> str:
    return _tell_version(list(command))


@pytest.fixture
def inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Inside:
    """Run `cachemark` with arguments in the test's own folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for name in COLOURS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys.modules[_tell_version.__module__], "_version", _told_version)

    def run(*arguments: str) -> Said:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(list(arguments))
        said = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Said(code, said.out, said.err)

    return run
