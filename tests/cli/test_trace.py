"""A trace is played once with a cold cache, and a line says so."""

from __future__ import annotations

from pathlib import Path

from tests.builders.small_experiments import read_outcomes
from tests.conftest import Cli

# a misses, is stored and read; b misses. 2e-05 is how Python prints 20 µs.
TRACE = """time,op,key,size
0,get,a,
2e-05,set,a,100
0.1,get,a,
0.2,get,b,
0.4,get,a,
"""


def test_a_trace_is_played_once_with_a_cold_cache(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text(TRACE)
    words = ["--trace", "day.csv", "--schedule", "replay:2", "--connections", "2"]
    ended = cli("run", "--client", "native", "--server", "embedded", *words, "--blocks", "1")
    # An open loop may be late on a busy machine: its counts hold.
    assert ended.returncode in (0, 1), ended.stderr
    said = " ".join(ended.stderr.split())
    assert "5 operations, 480 ms → 240 ms at 2 ×, played once, cold cache" in said
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.measure is not None
    done = outcome.measure.operations
    assert (done["set"].ok, done["get"].hits, done["get"].misses) == (1, 2, 2)


def test_a_closed_loop_plays_each_operation_once(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text(TRACE)
    ended = cli("run", "--client", "native", "--server", "embedded", "--trace", "day.csv",
                "--blocks", "1", "--schedule", "closed")  # fmt: skip
    assert ended.returncode in (0, 1), ended.stderr
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.measure is not None
    assert outcome.measure.operations["get"].attempts == 4


def test_a_trace_that_cannot_be_read_is_one_clear_error(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("time,op,key,size\nsoon,get,a,\n")
    ended = cli("run", "--client", "native", "--trace", "day.csv", "--dry-run")
    assert ended.returncode == 2
    assert 'day.csv: line 2: time "soon" is not a number of seconds' in ended.stderr
