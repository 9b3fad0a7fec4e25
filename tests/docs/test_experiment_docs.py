"""docs/experiment.md is printed from the code, and its examples can be played."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachemark.cli.experiment_docs import PAGE, document, example_files
from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside, inside

__all__ = ["inside"]

QUICK = [
    "--blocks",
    "1",
    "--set",
    "design=trials",
    "--set",
    "timing.warmup_ms=20",
    "--measure-ms",
    "100",
]


def test_the_page_is_that_of_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == document(), "run `make docs`"


def test_there_are_five_examples() -> None:
    assert len(example_files()) == 5


@pytest.mark.parametrize("example", example_files(), ids=lambda path: path.stem)
def test_each_example_is_played(inside: Inside, tmp_path: Path, example: Path) -> None:
    ended = inside("run", str(example), *QUICK)
    # An open loop may be late on a busy machine, and its trial is INVALID then.
    assert ended.returncode in (0, 1), ended.stderr
    assert {outcome.state for outcome in read_outcomes(tmp_path)} == {"measured"}, ended.stderr
