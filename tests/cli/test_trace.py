"""A trace is played once with a cold cache, and a line says so."""

from pathlib import Path

import pytest

from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside

# a misses, is stored and read; b misses. 2e-05 is how Python prints 20 µs.
TRACE = """time,op,key,size
0,get,a,
2e-05,set,a,100
0.1,get,a,
0.2,get,b,
0.4,get,a,
"""

RUN = ("run", "--client", "native", "--server", "embedded")
CLOSED = ("--set", "loads.schedule=closed", "--blocks", "1")


def test_a_trace_is_played_once_with_a_cold_cache(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text(TRACE)
    words = ["--trace", "day.csv", "--set", "loads.schedule=replay:2", "--connections", "2"]
    ended = inside(*RUN, *words, "--blocks", "1")
    # An open loop may be late on a busy machine: its counts hold.
    assert ended.returncode in (0, 1), ended.stderr
    said = " ".join(ended.stderr.split())
    assert "5 operations, 480 ms → 240 ms at 2 ×, played once, cold cache" in said
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.measure is not None
    done = outcome.measure.operations
    assert (done["set"].ok, done["get"].hits, done["get"].misses) == (1, 2, 2)


def test_a_closed_loop_plays_each_operation_once(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text(TRACE)
    ended = inside(*RUN, "--trace", "day.csv", *CLOSED)
    assert ended.returncode in (0, 1), ended.stderr
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.measure is not None
    assert outcome.measure.operations["get"].attempts == 4


def test_a_trace_that_cannot_be_read_is_one_clear_error(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("time,op,key,size\nsoon,get,a,\n")
    ended = inside("run", "--client", "native", "--trace", "day.csv", "--dry-run")
    assert ended.returncode == 2
    assert 'day.csv: line 2: time "soon" is not a number of seconds' in ended.stderr


def test_gets_that_miss_fill_the_cache_if_asked(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("op,key,size\nget,a,9\nget,a,9\nget,b,\n")
    words = ["--trace", "day.csv", "--set", "workloads.trace_gets=cache-aside"]
    ended = inside(*RUN, *words, *CLOSED)
    assert ended.returncode in (0, 1), ended.stderr
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.measure is not None
    done = outcome.measure.operations
    assert (done["fetch"].hits, done["fetch"].misses, done["get"].misses) == (1, 1, 1)
    said = " ".join(ended.stderr.split())
    assert "cache-aside: gets that miss store their keys" in said
    assert "1 gets do not fill the cache" in said
    assert "day-cache-aside" in ended.stdout
    (folder,) = (tmp_path / "results").iterdir()
    assert "cache-aside: gets that miss store their keys" in (folder / "report.md").read_text()
    # A library has no operation for it, which is said before the first trial.
    refused = inside(*RUN, "--client", "python/pymemcache", *words, *CLOSED)
    assert "not played: python/pymemcache: has no fetch" in " ".join(refused.stderr.split())


def test_what_a_trace_leaves_out_is_said_or_refused(inside: Inside, tmp_path: Path) -> None:
    lines = ["timestamp,op,key,size", *["set,a"] * 3, *["fetch,a"] * 1]
    (tmp_path / "day.csv").write_text("\n".join([lines[0], *(f"1,{x},5" for x in lines[1:])]))
    words = [*RUN, "--trace", "day.csv", *CLOSED]
    refused = inside(*words, "--dry-run")
    assert refused.returncode == 2
    said = " ".join(refused.stderr.split())
    assert "day.csv: 25.0 % of its operations are left out (1 fetch" in said
    assert "--set workloads.trace_left_out=0.25" in said
    ended = inside(*words, "--set", "workloads.trace_left_out=0.25")
    assert ended.returncode in (0, 1), ended.stderr
    said = " ".join(ended.stderr.split())
    assert "left out 25.00 % of 4 operations: 1 fetch" in said
    assert "columns that are not used: timestamp" in said
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.tape is not None
    assert outcome.tape.trace is not None
    assert sum(outcome.tape.trace.left_out.values()) == 1
    (folder,) = (tmp_path / "results").iterdir()
    assert "left out 25.00 % of 4 operations" in (folder / "report.md").read_text()


def test_the_plan_of_a_replay_has_the_traces_length(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "day.log").write_text("0;get;a\n60000;get;a\n")
    columns = ["--trace", "day.log", "--set", "workloads.trace_columns=time:ms;op;key"]
    replay = ["--set", "loads.schedule=replay", "--blocks", "4"]
    ended = inside(*RUN, *columns, *replay, "--dry-run")
    assert ended.returncode == 0, ended.stderr
    # A pass ends one mean gap after the last arrival: 90 s.
    assert "4 trials, 4 blocks, about 6 min" in " ".join(ended.stderr.split())


def test_the_first_column_may_be_unused(inside: Inside, tmp_path: Path) -> None:
    """As in Alibaba's traces: `-` begins the names, and is no option."""
    (tmp_path / "blocks.csv").write_text("0,R,4096,512,10\n1,W,8192,512,20\n")
    ended = inside("trace", "show", "blocks.csv", "--columns", "-,op,key,size,time:us")
    assert ended.returncode == 0, ended.stderr
    assert "2 requests in 0.0 s" in ended.stdout


@pytest.mark.parametrize(
    "options", [("--columns", "time,op,key,bytes"), ("--trace-format", "parquet")]
)
def test_an_option_that_the_engine_refuses_is_said_alone(
    options: tuple[str, str], inside: Inside, tmp_path: Path
) -> None:
    (tmp_path / "day.csv").write_text(TRACE)
    ended = inside("trace", "show", "day.csv", *options)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"cachemark: invalid value '{options[1]}' for '{options[0]} ")
    assert "--help" not in ended.stderr
