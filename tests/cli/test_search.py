"""`run --search`: played, kept, continued, and refused where it makes no sense."""

from pathlib import Path

import pytest

from cachemark.runs.storage.store import latest_run
from tests.builders.outcomes import header
from tests.builders.search_outcomes import search_experiment
from tests.builders.small_experiments import TRIALS, read_outcomes, write
from tests.builders.stored_runs import kept
from tests.cli.in_process import Inside
from tests.conftest import Cli

SEARCH = ("--search", "p50<10s", "--blocks", "1", "--set", "noise=note")


@pytest.mark.slow("plays open loops at several rates, twice")
def test_a_search_is_played_kept_and_continued(cli: Cli, inside: Inside, tmp_path: Path) -> None:
    ended = cli("run", write(tmp_path), *SEARCH)
    # On a busy machine every trial may be late: then no rate is found, which is status 1.
    assert ended.returncode in (0, 1), ended.stderr
    assert "the highest rate with p50<10s, 1 cell, 1 search of about 12 trials" in ended.stderr
    assert ("meets p50<10s up to" in ended.stdout) == (ended.returncode == 0)
    said = " ".join(ended.stdout.split())
    none = "no rate meets p50<10s" in said or "no rate was shown to meet p50<10s" in said
    assert none == (ended.returncode == 1)
    outcomes = read_outcomes(tmp_path)
    assert [outcome.trial.index for outcome in outcomes] == list(range(len(outcomes)))
    assert (outcomes[0].load.schedule, outcomes[0].trial.cell.load) == ("closed", "one-closed")
    rates = [outcome.load.rate for outcome in outcomes[1:]]
    assert all(rate and outcome.trial.cell.load == f"one-{rate:g}-rate"
               for rate, outcome in zip(rates, outcomes[1:], strict=True))  # fmt: skip
    (folder,) = (tmp_path / "results").iterdir()
    again = cli("run", "--resume", folder.name)
    assert again.returncode == ended.returncode
    assert len(read_outcomes(tmp_path)) == len(outcomes)
    for form in ("table", "json", "csv", "html", "openmetrics"):
        made = inside("report", folder.name, "--format", form)
        assert made.returncode == 0, made.stderr
    assert inside("export", folder.name, "run.zip").returncode == 0
    assert inside("import", "run.zip", "--runs", "other").returncode == 0


def test_a_dry_run_says_how_much_is_searched(inside: Inside) -> None:
    told = inside("run", "--client", "native", "--search", "p99<1ms", "--dry-run")
    assert told.returncode == 0, told.stderr
    assert "3 searches of" in " ".join(told.stderr.split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--search", "p99"), "'p99' is no objective"),
        (("--search", "p99<1ms", "--rate", "5k"), "leave out --rate"),
        (
            ("--search", "p99<1ms", "--set", "loads.schedule=closed"),
            "a closed loop or a replay has no rate",
        ),
        (("--search", "p99<1ms", "--set", "loads.think=1ms"), "leave out --set loads.think"),
        (("--search", "p99<1ms", "--set", "design=rounds"), "leave out --set design=rounds"),
    ],
)
def test_bad_input_is_one_clear_error(inside: Inside, words: tuple[str, ...], says: str) -> None:
    ended = inside("run", "--client", "native", "--dry-run", *words)
    assert ended.returncode == 2
    assert says in ended.stderr


@pytest.mark.parametrize(
    ("settings", "load", "says"),
    [
        ('search = "p99"', 'schedule = "poisson"', "'p99' is no objective"),
        ('search = "p99<1ms"', "", "a closed loop or a replay has no rate"),
        ('search = "p99<1ms"', 'schedule = "poisson"\nrate = 5', "leave out rate"),
        ('search = "p99<1ms"\ndesign = "rounds"', 'schedule = "poisson"', "not rounds"),
    ],
)
def test_a_file_that_makes_no_sense_is_one_clear_error(
    inside: Inside, tmp_path: Path, settings: str, load: str, says: str
) -> None:
    text = TRIALS.replace('design = "trials"', settings)
    (tmp_path / "x.toml").write_text(text.replace('name = "one"', f'name = "one"\n{load}'))
    ended = inside("run", str(tmp_path / "x.toml"), "--dry-run")
    assert ended.returncode == 2
    assert says in ended.stderr


@pytest.mark.slow("plays open loops at several rates, twice")
def test_a_finished_search_goes_on_with_more_blocks(inside: Inside, tmp_path: Path) -> None:
    first = inside("run", write(tmp_path), *SEARCH)
    assert first.returncode in (0, 1), first.stderr  # 1: on a busy machine every trial is late
    before = read_outcomes(tmp_path)
    ended = inside("run", "--resume", "--blocks", "2")
    assert ended.returncode in (0, 1), ended.stderr
    after = read_outcomes(tmp_path)
    assert after[: len(before)] == before
    assert {of.trial.block for of in before} == {0}
    assert {of.trial.block for of in after[len(before) :]} == {1}
    assert [of.trial.index for of in after] == list(range(len(after)))
    assert after[len(before)].load.schedule == "closed"
    assert latest_run(tmp_path / "results").header.experiment.blocks == 2


def test_a_search_has_no_longer_time(inside: Inside, tmp_path: Path) -> None:
    kept(tmp_path / "results", header(search_experiment()), [])
    ended = inside("run", "made", "--resume", "--max", "10m")
    assert ended.returncode == 2
    assert "a search, which ends when its rates are found" in " ".join(ended.stderr.split())
