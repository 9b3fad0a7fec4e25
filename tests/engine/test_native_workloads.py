"""Workloads that only the native client plays, through whole trials."""

from pathlib import Path

from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside

TEXT = """name = "x"
question = "q"
clients = ["native"]
servers = ["embedded"]
blocks = 1
timing = { warmup_ms = 0, measure_ms = 200, timeout_ms = 10000 }
placement = { server = "none", worker = "none" }
[[workloads]]
name = "fetch"
mix = { fetch = 1 }
prefill = 0.25
ops = 2000
keys = { count = 1000 }
loads = ["l"]
[[workloads]]
name = "hits"
preset = "etc"
mix = { get = 1 }
ops = 2000
keys = { count = 1000 }
loads = ["l"]
[[workloads]]
name = "think"
mix = { get = 1 }
ops = 100
loads = ["thoughtful"]
[[workloads]]
name = "trace"
trace = "trace.csv"
loads = ["again"]
[[loads]]
name = "again"
schedule = "replay:10"
[[loads]]
name = "l"
connections = 4
[[loads]]
name = "thoughtful"
think = "1ms"
connections = 2
"""


def test_fetch_hits_and_thought_are_judged_by_the_servers_counts(
    inside: Inside, tmp_path: Path
) -> None:
    (tmp_path / "x.toml").write_text(TEXT)
    lines = [f"{n / 100},{('set', 'get')[n % 2]},key-{n // 2},100\n" for n in range(100)]
    (tmp_path / "trace.csv").write_text("time,op,key,size\n" + "".join(lines))
    ran = inside("run", "x.toml")
    played = {outcome.trial.cell.workload: outcome for outcome in read_outcomes(tmp_path)}
    assert played.keys() == {"fetch", "hits", "think", "trace"}, ran.stdout + ran.stderr
    # An open loop may be late on a busy machine, and its verdict says so; its counts hold.
    closed = {name: outcome.verdict for name, outcome in played.items() if name != "trace"}
    assert set(closed.values()) == {"VALID"}, ran.stdout + ran.stderr
    done = {name: outcome.measure for name, outcome in played.items() if outcome.measure}
    fetch = done["fetch"].operations["fetch"]
    # 250 of 1,000 keys are stored first, each other one by the fetch that misses it.
    assert fetch.ok == fetch.hits + fetch.misses == 2000
    assert 400 < fetch.misses <= 750
    get = done["hits"].operations["get"]
    assert abs(get.hits / get.ok - 0.814) < 3.29 * (0.814 * 0.186 / 2000) ** 0.5
    # One second of recorded time, ten times as fast, twice in the window: each get finds its key.
    replayed = done["trace"].operations
    assert replayed["set"].ok >= 50
    assert replayed["get"].hits == replayed["get"].ok >= 50
    # Two callers that think 1 ms: fifty operations each take 50 ms at least.
    assert done["think"].elapsed_ns >= 50_000_000
    assert done["think"].send_lag is not None
