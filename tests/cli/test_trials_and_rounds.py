"""Both designs say the same about a pair of clients: trials alone, and rounds in turn."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from cachemark.analysis.rounds.estimate import LogEstimate, difference, mean_of_logs
from cachemark.analysis.rounds.looks import MIN_SITTINGS
from cachemark.analysis.rounds.pairs import estimate_pair, read_sittings
from cachemark.analysis.statistics import t_quantile, window_rate
from cachemark.endpoints.clients import registry
from cachemark.host import process
from cachemark.model.outcome import Cell, Outcome
from tests.builders.small_experiments import ROUNDS, read_outcomes, write
from tests.conftest import Cli

BLOCKS = 5
# The designs differ in what they measure: slices begin with cold caches, and a trial has the
# machine for itself (docs/methodology-statistics.md, "What turns do to a client"). So the
# ratios may differ.
ALLOWED = 1.2
CONFIDENCE = 0.999
# The first of each pair does far more, so that a mistake in either design is larger than ALLOWED.
PAIRS = [
    pytest.param("python/pylibmc", "python/aiomcache", 300, id="CPython"),
    pytest.param("ruby/dalli", "ruby/mem_cache_store", 300, id="a collector of garbage"),
    pytest.param("java/folsom", "java/spymemcached", 1500, id="a JIT compiler"),
]


def play(cli: Cli, folder: Path, design: str, pair: Sequence[str], warmup_ms: int) -> list[Outcome]:
    folder.mkdir()
    write(
        folder,
        ROUNDS.replace("blocks = 2", 'blocks = 2\nnoise = "note"'),
        design=json.dumps(design),
        blocks=str(BLOCKS),
        clients=json.dumps(pair),
        twice='""',
        warmup_ms=str(warmup_ms),
        measure_ms="400",
        ready_ms="60000",
        silence_ms="60000",
    )
    ended = cli(
        "run", str(folder / "experiment.toml"), "--out", str(folder / "results"), timeout_s=1500
    )
    # Status 1: a trial failed, as when a library connects too slowly. Enough others must count.
    assert ended.returncode in {0, 1}, ended.stderr
    return read_outcomes(folder)


def by_trials(played: Sequence[Outcome], pair: Sequence[Cell]) -> LogEstimate:
    rates = {(o.trial.cell, o.trial.block): window_rate(o) for o in played if o.verdict == "VALID"}
    logs: list[float] = []
    for block in range(BLOCKS):
        first, second = (rates.get((cell, block)) for cell in pair)
        if first and second:
            logs.append(math.log(first / second))
    assert len(logs) >= MIN_SITTINGS, [(o.verdict, o.reasons, o.reason) for o in played]
    return mean_of_logs(logs)


@pytest.mark.slow("plays two clients of three languages in both designs")
@pytest.mark.parametrize(("first", "second", "warmup_ms"), PAIRS)
def test_both_designs_agree_about_a_pair(
    cli: Cli, tmp_path: Path, first: str, second: str, warmup_ms: int
) -> None:
    known = registry(process.binary_path())
    for name in (first, second):
        if missing := known[name].missing():
            pytest.skip(missing)
    pair = [
        Cell(client=name, server="embedded", workload="mixed", load="one")
        for name in (first, second)
    ]
    trials = by_trials(play(cli, tmp_path / "trials", "trials", (first, second), warmup_ms), pair)
    played = play(cli, tmp_path / "rounds", "rounds", (first, second), warmup_ms)
    found = estimate_pair(read_sittings(played), pair[0], pair[1], "rate")
    assert found.scope == "over", [(o.verdict, o.reasons, o.reason) for o in played]
    assert found.estimate is not None
    apart = difference(found.estimate, trials)
    assert apart.error is not None
    joint = t_quantile((1 + CONFIDENCE) / 2, apart.degrees_of_freedom) * apart.error

    assert abs(apart.value) <= joint + math.log(ALLOWED), (
        f"rounds {math.exp(found.estimate.value):.2f}, trials {math.exp(trials.value):.2f}, "
        f"joint interval ±{joint:.2f}"
    )
