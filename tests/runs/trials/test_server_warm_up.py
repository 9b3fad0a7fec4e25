"""Operations that other workers play before a trial: the server has seen them, the client not."""

from pathlib import Path

from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside

WARM = """
name = "warm"
question = "?"
design = "trials"
clients = ["native"]
servers = ["embedded"]
blocks = 1
loads = [{ name = "two", threads = 2 }]

[[workloads]]
name = "sets"
mix = { set = 1 }
keys = { count = 100 }
prefill = 0.0
ops = 30
warmup_ms = 0
server_warmup_ops = 70
"""


def test_the_server_is_warm_and_the_client_is_cold(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(WARM)
    ended = inside("run", "e.toml")
    assert ended.returncode == 0, ended.stderr
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.stats_before["cmd_set"] == "70"
    assert outcome.stats_after["cmd_set"] == "100"
    assert outcome.warmup is None
    assert outcome.measure is not None
    assert outcome.measure.operations["set"].ok == 30
    # The other workers' connections are closed.
    before, after = (
        int(stats["total_connections"]) for stats in (outcome.stats_before, outcome.stats_after)
    )
    assert after == before
