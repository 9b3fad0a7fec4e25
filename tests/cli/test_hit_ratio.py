"""The hit ratio of a cache that fills by what it is asked for is that of theory, or withheld.

Of K equally likely keys, n fetches find a new one K (1 - exp(-n / K)) times.
"""

import json
import math
from pathlib import Path

from cachemark.analysis.verdict import hits_withheld
from cachemark.endpoints.servers import parse_spec, running
from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside
from tests.engine.drive_command import drive

_KEYS = 20_000
_WORK = ("--mix", "fetch=1", "--keys", str(_KEYS), "--distribution", "uniform", "--prefill", "0")
_RUN = ("run", "--client", "native", "--server", "memcached", "--mix", "fetch=1",
        "--keys", str(_KEYS), "--set", "workloads.prefill=0",
        "--set", "workloads.keys.distribution=uniform", "--ops", "10000",
        "--blocks", "1", "--set", "noise=note")  # fmt: skip


def _is_theory(fetches: int, misses: int) -> bool:
    expected = _KEYS * -math.expm1(-fetches / _KEYS)
    # The number of new keys varies less than a binomial count does.
    return abs(misses - expected) < 4 * math.sqrt(expected * (1 - expected / _KEYS)) + 1


_GRID = """
name = "grid"
question = "What does a miss cost?"
design = "trials"
blocks = 1
noise = "note"
clients = ["native"]
servers = ["memcached"]
[timing]
warmup_ms = 0
[[workloads]]
name = "gets"
mix = { get = 1 }
keys = { count = 20_000 }
ops = 8_000
hit_ratio = [0.2, 0.8]
[[loads]]
name = "one"
"""


def test_several_hit_ratios_are_one_grid(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(_GRID, encoding="utf-8")
    ended = inside("run", "grid.toml")
    assert ended.returncode == 0, ended.stderr
    found: dict[str, float] = {}
    for outcome in read_outcomes(tmp_path):
        assert outcome.measure is not None
        gets = outcome.measure.operations["get"]
        found[outcome.trial.cell.workload] = gets.hits / (gets.hits + gets.misses)
    assert found.keys() == {"gets-0.2-hit_ratio", "gets-0.8-hit_ratio"}
    for name, ratio in found.items():
        expected = float(name.split("-")[1])
        assert abs(ratio - expected) < 4 * math.sqrt(expected * (1 - expected) / 8_000)


def test_a_run_that_fills_its_cache_finds_what_theory_says(inside: Inside, tmp_path: Path) -> None:
    ended = inside(*_RUN)
    assert ended.returncode == 0, ended.stderr
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.measure is not None
    assert outcome.warmup is None
    fetches = outcome.measure.operations["fetch"]
    assert fetches.attempts == 10_000
    assert _is_theory(10_000, fetches.misses), fetches.misses
    assert not hits_withheld(outcome)
    assert f"{fetches.hits / 100:.1f} %" in ended.stdout


def test_hits_of_a_repeated_tape_are_in_no_report(inside: Inside, tmp_path: Path) -> None:
    ended = inside(*_RUN, "--set", "workloads.records=2000")
    assert ended.returncode == 0, ended.stderr
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.measure is not None
    # The first of five passes alone misses.
    told = outcome.measure.operations["fetch"]
    assert told.hits > 8000
    assert "hits and misses withheld in 1 of 1 trials" in " ".join(ended.stdout.split())
    assert "workloads.records = 20000 makes it long enough" in " ".join(ended.stdout.split())
    (folder,) = (tmp_path / "results").iterdir()
    for form in ("table", "csv", "json", "markdown", "html", "openmetrics", "google-benchmark"):
        made = inside("report", folder.name, "--format", form)
        assert made.returncode == 0, made.stderr
        written = [made.stdout, *(path.read_text() for path in tmp_path.glob("cachemark*"))]
        assert all(f"{told.hits}" not in text for text in written), form


def test_a_warm_up_that_fills_the_cache_withholds_hits(inside: Inside, tmp_path: Path) -> None:
    ended = inside(*_RUN, "--set", "timing.warmup_ms=200")
    assert ended.returncode == 0, ended.stderr
    (outcome,) = read_outcomes(tmp_path)
    assert hits_withheld(outcome)
    assert "timing.warmup_ms = 0" in " ".join(ended.stdout.split())


def test_the_engine_counts_the_hits_of_a_tape_played_once() -> None:
    with running(parse_spec("memcached")) as server:
        ended = drive("--server", server.addresses[0], *_WORK, "--duration", "1000ms", "--json")
    document = json.loads(ended.stdout)
    fetches = document["measure"]["operations"]["fetch"]
    assert document["warmup_ops"] + fetches["attempts"] <= document["tape_ops"]
    assert _is_theory(fetches["ok"], fetches["misses"]), fetches
