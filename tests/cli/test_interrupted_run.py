"""The last line of a run that is interrupted."""

from pathlib import Path
from typing import Any

import pytest

from cachemark.model.outcome import Outcome
from cachemark.runs.play import Job, play
from tests.builders.small_experiments import write
from tests.cli.in_process import Inside


def test_interrupted_run_counts_no_cells_that_cannot_be_played(
    tmp_path: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play_and_interrupt(job: Job, *more: Any) -> list[Outcome]:
        play(job, *more)
        raise KeyboardInterrupt

    monkeypatch.setattr("cachemark.cli.play.play", play_and_interrupt)
    monkeypatch.delenv("QUICKCACHED_HOME", raising=False)
    ended = inside("run", write(tmp_path), "--server", "embedded", "--server", "quickcached")
    assert "interrupted: 2 of 2 trials are kept" in ended.stderr
