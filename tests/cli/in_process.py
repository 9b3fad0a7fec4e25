"""The CLI inside the test's own process: for verbs that start none, and are asked often."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from cachemark import cli

COLOURS = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


class Said(NamedTuple):
    """How a verb ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


Inside = Callable[..., Said]


@pytest.fixture
def inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Inside:
    """Run `cachemark` with arguments in the test's own folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for name in COLOURS:
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> Said:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(list(arguments))
        said = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Said(code, said.out, said.err)

    return run
