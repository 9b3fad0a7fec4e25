"""`cachemark drive`: one server, the native client, and a run that every other verb reads."""

from pathlib import Path

import pytest

from cachemark.runs.storage.store import run_names
from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside
from tests.conftest import Cli

SHORT = ("--duration", "200ms", "--warmup", "50ms", "--keys", "100")
FOUR = ("--connections", "4", "--mix", "get=1", *SHORT)


def test_a_drive_is_a_run_of_the_store(cli: Cli, inside: Inside, tmp_path: Path) -> None:
    ended = cli("drive", "embedded", *FOUR)
    assert ended.returncode == 0, ended.stderr
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.trial.cell.client == "native"
    assert (outcome.load.connections, outcome.load.schedule) == (4, "closed")
    assert (outcome.timing.measure_ms, outcome.timing.warmup_ms) == (200, 50)
    (folder,) = (tmp_path / "results").iterdir()
    assert folder.name.endswith("-drive")
    assert folder.name in inside("history").stdout
    for form in ("table", "json", "csv"):
        made = inside("report", folder.name, "--format", form)
        assert made.returncode == 0, made.stderr
    assert inside("export", folder.name, "run.zip").returncode == 0
    assert cli("drive", "embedded", *FOUR).returncode == 0
    compared = inside("compare", *run_names(tmp_path / "results"))
    assert compared.returncode == 0, compared.stderr


def test_connections_are_opened_again_after_their_operations(
    cli: Cli, inside: Inside, tmp_path: Path
) -> None:
    ended = cli("drive", "embedded", "--reconnect-after", "10", *FOUR)
    assert ended.returncode == 0, ended.stderr
    (outcome,) = read_outcomes(tmp_path)
    measure = outcome.measure
    assert measure is not None
    (gets,) = measure.operations.values()
    # Each connection may be in the middle of its life, before the window and at its end.
    assert gets.ok // 10 - 4 <= measure.renewed <= gets.ok // 10
    assert outcome.verdict == "VALID", outcome.findings
    (run,) = run_names(tmp_path / "results")
    assert "new connections" in inside("report", run).stdout


def test_settings_without_an_option_are_typed_by_their_path(
    cli: Cli, inside: Inside, tmp_path: Path
) -> None:
    ended = cli("drive", "embedded", "--set", "timing.timeout_ms=777", *SHORT)
    assert ended.returncode == 0, ended.stderr
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.timing.timeout_ms == 777
    twice = inside("drive", "embedded", "--depth", "2", "--set", "loads.depth=3", *SHORT)
    assert twice.returncode == 2
    assert "--depth and --set of the same setting" in twice.stderr


def test_an_address_is_a_server_that_runs_already(inside: Inside) -> None:
    ended = inside("drive", "nowhere", *SHORT)
    assert ended.returncode == 2
    assert "remote:nowhere" in ended.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--reconnect-after", "0"), "Must be >= 1"),
        (("--duration", "10"), "--duration: '10' is no time"),
        (("--warmup", "1.5us"), "write 500ms, 10s or 2m"),
        (("--search", "p99"), "'p99' is no objective"),
        (("--rate", "5k", "--search", "p99<1ms"), "leave out --rate"),
    ],
)
def test_bad_input_is_one_clear_error(inside: Inside, words: tuple[str, ...], says: str) -> None:
    ended = inside("drive", "embedded", *words)
    assert ended.returncode == 2
    assert says in ended.stderr
