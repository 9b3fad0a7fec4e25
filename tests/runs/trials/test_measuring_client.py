"""A measuring client beside load generators, on one host, as a user plays it."""

from pathlib import Path

import pytest

from cachemark.host.placement import apart
from cachemark.model import histogram
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Load, Measure
from cachemark.model.experiment_file import parse
from cachemark.model.outcome import Outcome
from cachemark.model.plan import measuring_load, uses_rounds
from cachemark.model.protocol import Done
from tests.builders.small_experiments import PATIENT, TRIALS, read_outcomes
from tests.cli.in_process import Inside

LOADED = (
    TRIALS.replace(*PATIENT)
    .replace("blocks = 2", 'blocks = 1\nnoise = "note"')
    .replace(
        'name = "one"\n',
        'name = "one"\nschedule = "uniform"\nrate = 300\nprocesses = 2\nmeasure = { rate = 100 }\n',
    )
)


def keys_and_stores(done: Done) -> tuple[int, int]:
    """The keys that were read and the items that were stored."""
    found = done.operations
    return sum(found[kind].keys for kind in found if kind != "set"), found["set"].keys


def counter(outcome: Outcome, name: str) -> int:
    """The rise of a counter of the server's."""
    return int(outcome.stats_after[name]) - int(outcome.stats_before[name])


def test_both_are_counted_and_only_the_measuring_client_is_timed(
    inside: Inside, tmp_path: Path
) -> None:
    text = LOADED.replace("measure_ms = 300", "measure_ms = 400")
    (tmp_path / "experiment.toml").write_text(text, encoding="utf-8")
    ended = inside("run", "experiment.toml")
    (played,) = read_outcomes(tmp_path)
    assert played.state == "measured", ended.stderr
    assert played.measure is not None
    assert played.generators is not None
    generated = played.generated
    assert generated is not None
    # All that was due: the load's 300 and the client's 100 a second, for 0.4 s.
    assert sum(each.attempts for each in generated.operations.values()) + generated.unsent == 120
    assert played.tape is not None
    own = sum(each.attempts for each in played.measure.operations.values())
    assert own + played.measure.unsent == played.tape.ops < 120
    reads, stores = map(sum, zip(*map(keys_and_stores, (played.measure, generated)), strict=True))
    assert (counter(played, "cmd_get"), counter(played, "cmd_set")) == (reads, stores)
    assert "server-counters" not in {found.rule for found in played.findings}
    times = histogram.merge_encoded(each.response for each in played.measure.operations.values())
    assert times is not None
    assert times.count == sum(each.ok for each in played.measure.operations.values())
    (report,) = tmp_path.glob("results/*/report.md")
    assert "## Load generators" in report.read_text(encoding="utf-8")


def test_the_measuring_client_plays_a_low_poisson_load() -> None:
    load = Load(name="big", schedule="uniform", rate=9e5, threads=8, depth=4, wire="meta")
    assert measuring_load(load) is load
    beside = Load(name="big", rate=None, threads=8, wire="meta", measure=Measure(connections=2))
    assert measuring_load(beside) == Load(
        name="big", schedule="poisson", rate=1000, connections=2, wire="meta"
    )


def test_cells_with_a_measuring_client_are_played_as_trials() -> None:
    text = TRIALS.replace('design = "trials"', 'twice = "native"')
    assert uses_rounds(parse(text, "e.toml"))
    assert not uses_rounds(parse(f"{text}".replace('name = "one"', LOAD_TEXT), "e.toml"))


LOAD_TEXT = 'name = "one"\nmeasure = {}'


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('design = "trials"', 'design = "rounds"', "plays trials, not rounds"),
        ("records = 1000", "passes = 1", "workload 'mixed' has its own end"),
        ("records = 1000", "server_warmup_ops = 9", "its own warm-up of the server"),
        ("blocks = 1", 'blocks = 1\nin_process = ["go/otter"]', "needs a server"),
        ("rate = 100 }", "rat = 100 }", "no such setting"),
        ("rate = 100 }", "rate = 0 }", "> 0"),
    ],
)
def test_what_cannot_be_played_is_one_clear_error(old: str, new: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(LOADED.replace(old, new), "e.toml")
    assert text in caught.value.text
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("cpus", "own", "others"), [("", "", ""), ("3", "3", "3"), ("1,2,5", "1", "2,5")]
)
def test_the_measuring_client_has_its_own_cpu_among_several(
    cpus: str, own: str, others: str
) -> None:
    assert apart(cpus) == (own, others)
