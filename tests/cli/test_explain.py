"""`cachemark explain`: terms, and cells of runs in trials and in rounds."""

from pathlib import Path

import pytest

from tests.builders.small_experiments import ROUNDS, TRIALS, write
from tests.cli.in_process import Inside
from tests.conftest import Cli


@pytest.mark.parametrize(
    ("term", "says"),
    [
        ("NON_STATIONARY", "rose throughout the window"),
        ("invalid", "cannot be trusted"),
        ("steal", "hypervisor"),
        ("unsupported", "not played"),
        ("failed", "could not be played to its end"),
        ("kernel-log hung-task", "kernel's log"),
    ],
)
def test_a_term_is_explained(inside: Inside, term: str, says: str) -> None:
    ended = inside("explain", term)
    assert (ended.returncode, says in ended.stdout) == (0, True), ended.stderr


def test_what_is_neither_a_term_nor_a_run_is_refused(inside: Inside) -> None:
    ended = inside("explain", "nonsense")
    assert ended.returncode == 2
    assert "is no run, no verdict and no rule" in ended.stderr


def test_a_cell_of_trials_is_explained(cli: Cli, inside: Inside, tmp_path: Path) -> None:
    # By operations: a window of milliseconds may have none on a busy machine.
    work = TRIALS.replace("records = 1000", "records = 1000\nops = 200")
    assert cli("run", write(tmp_path, work)).returncode == 0
    ended = inside("explain")
    if ended.returncode:
        assert "name one, with its title or with --client" in ended.stderr
        ended = inside("explain", "--client", "native")
    assert ended.returncode == 0, ended.stderr
    assert "trials: one after the other" in ended.stdout
    assert "successful operations in" in ended.stdout
    named = inside("explain", "latest", "native", "embedded")
    assert (named.returncode, named.stdout) == (0, ended.stdout), named.stderr
    missing = inside("explain", "latest", "nobody")
    assert missing.returncode == 2
    missing = inside("explain", "--client", "nobody")
    assert missing.returncode == 2
    assert "the run has no such cell" in missing.stderr


@pytest.mark.slow("plays sittings")
def test_a_cell_of_rounds_is_explained(cli: Cli, inside: Inside, tmp_path: Path) -> None:
    servers = '["embedded", "embedded:io=blocking"]'
    assert cli("run", write(tmp_path, ROUNDS, servers=servers)).returncode == 0
    ended = inside("explain", "--client", "native", "--server", "embedded:io=blocking")
    assert ended.returncode == 0, ended.stderr
    assert "sittings: a fresh server and worker each" in ended.stdout
    assert "slices" in ended.stdout
    assert "what changes when processes start anew is not in it" in ended.stdout
