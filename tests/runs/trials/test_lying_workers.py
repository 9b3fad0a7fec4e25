"""Workers that lie about their own times, played by `cachemark run`, and an honest one."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from cachemark.host import process
from cachemark.model.outcome import Outcome
from tests.builders.small_experiments import PATIENT, TRIALS, read_outcomes, write
from tests.cli.in_process import Inside, inside
from tests.conftest import ROOT

__all__ = ["inside"]

WORKER = [sys.executable, str(ROOT / "tests/runs/trials/lying_worker.py")]
OWN_TIMES = {"own-clock", "own-cpu"}


def play(inside: Inside, folder: Path, lie: str, *options: str) -> Outcome:
    command = shlex.join([*WORKER, lie, process.binary_path(), "worker", "network"])
    text = TRIALS.replace(*PATIENT).replace("blocks = 2", 'blocks = 1\nnoise = "note"')
    name = write(folder, text)
    ended = inside("run", name, "--client", f"command:{command}", *options)
    (played,) = read_outcomes(folder)
    assert played.state == "measured", ended.stderr
    return played


@pytest.mark.parametrize(
    ("lie", "options", "rules"),
    [
        ("clock", ("--measure-ms", "200"), {"own-clock"}),
        ("cpu", ("--measure-ms", "3000"), {"own-cpu"}),
        ("honest", ("--measure-ms", "2500"), set[str]()),
        ("honest", ("--ops", "3000"), set[str]()),
    ],
)
def test_a_lie_about_a_window_is_found(
    inside: Inside, tmp_path: Path, lie: str, options: tuple[str, ...], rules: set[str]
) -> None:
    played = play(inside, tmp_path, lie, *options)
    assert {found.rule for found in played.findings} & OWN_TIMES == rules
    assert played.verdict == ("INVALID" if rules else "VALID"), played.findings
