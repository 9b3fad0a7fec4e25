"""`cachemark new`: the file is read as the experiment that the options or answers stand for."""

from pathlib import Path

import pytest

from cachemark.cli.new import answered
from cachemark.cli.overrides import Overrides, planned_experiment
from cachemark.cli.run_options import RunOptions
from cachemark.model import suites
from cachemark.model.experiment_file import load, parse
from cachemark.model.experiment_settings import experiment_text
from tests.cli.in_process import Inside


def test_options_become_a_commented_file_that_can_be_played(inside: Inside, tmp_path: Path) -> None:
    words = ["--client", "native", "--server", "memcached:memory=1g", "--mix", "set=5,get=95"]
    made = inside("new", "mine.toml", *words, "--size", "1k", "--threads", "4", "--threads", "16")
    assert made.returncode == 0, made.stderr
    text = (tmp_path / "mine.toml").read_text()
    assert '# bytes of a value: a size\nsize = "1k"' in text
    read = load(tmp_path / "mine.toml")
    assert (read.name, read.clients) == ("mine", ["native"])
    assert list(read.workloads[0].mix) == ["set", "get"]
    assert [one.threads for one in read.loads] == [4, 16]
    planned = inside("run", "mine.toml", "--dry-run")
    assert planned.returncode == 0, planned.stderr
    again = inside("new", "mine.toml", *words)
    assert again.returncode == 2
    assert "mine.toml exists" in again.stderr


@pytest.mark.parametrize("name", suites.names())
def test_every_suite_is_read_as_it_is_written(name: str) -> None:
    whole = planned_experiment(name, Overrides())
    text = experiment_text(whole).replace("[quick]", "")
    read = parse(text, "written.toml")
    assert read.workloads == whole.workloads
    assert read.loads == whole.loads
    assert (read.clients, read.timing, read.rounds) == (whole.clients, whole.timing, whole.rounds)


def test_answers_are_options() -> None:
    said = iter(["native go/*", "", "get=1", "1k..4k", "", "1, 4", "20k"])
    typed = answered(lambda _question, offered: next(said) or offered)
    assert typed == RunOptions(
        client=("native", "go/*"),
        server=("memcached",),
        mix="get=1",
        size="1k..4k",
        keys="10k",
        threads=(1, 4),
        rate="20k",
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["mine.txt"], "write mine.txt.toml"),
        (["mine.toml", "--size", "4q"], "--size"),
        (["mine.toml", "--client", "natif"], "did you mean 'native'?"),
        (["mine.toml", "--server", "memcachd"], "did you mean 'memcached'?"),
    ],
)
def test_bad_input_writes_no_file(
    inside: Inside, tmp_path: Path, words: list[str], says: str
) -> None:
    refused = inside("new", *words)
    assert refused.returncode == 2
    assert says in refused.stderr
    assert not list(tmp_path.iterdir())
