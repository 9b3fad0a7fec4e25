"""The native client over several servers: every key has its home, and each server has some."""

import json
from pathlib import Path

import pytest

from cachemark.endpoints.servers import parse_spec, running
from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside

EXPERIMENT = """
name = "spread"
question = "?"
clients = ["native", "native?hashing=ketama"]
servers = ["{server}"]
blocks = 1

[[workloads]]
name = "mixed"
mix = {{ get = 8, set = 1, gat = 1, delete = 1 }}
keys = {{ count = 3000 }}
records = 3000

[[workloads]]
name = "many"
mix = {{ mget = 1 }}
keys = {{ count = 100 }}
loads = ["one"]

[[loads]]
name = "one"

[[loads]]
name = "busy"
threads = 2
connections = 4
depth = 8

[[loads]]
name = "open"
schedule = "uniform"
rate = 500
connections = 2

[timing]
warmup_ms = 50
measure_ms = 300
"""


def test_operations_go_to_the_servers_of_their_keys(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(EXPERIMENT.format(server="cluster:3:embedded:memory=16m"))
    inside("run", "e.toml")
    for outcome in read_outcomes(tmp_path):
        if outcome.trial.cell.load == "open":
            # On a machine that is busy its schedule may not hold.
            assert outcome.measure is not None, outcome.reason
        else:
            assert outcome.verdict == "VALID", (outcome.reason, outcome.reasons)


@pytest.mark.parametrize("client", ["native", "native?hashing=ketama"])
def test_keys_are_distributed_over_all_servers(inside: Inside, tmp_path: Path, client: str) -> None:
    with (
        running(parse_spec("embedded:memory=16m")) as one,
        running(parse_spec("embedded:memory=16m")) as two,
        running(parse_spec("embedded:memory=16m")) as three,
    ):
        places = ",".join(server.addresses[0] for server in (one, two, three))
        text = EXPERIMENT.format(server=f"remote:{places}")
        text = text.replace('["native", "native?hashing=ketama"]', json.dumps([client]))
        (tmp_path / "e.toml").write_text(text.replace("gat = 1, delete = 1", "gat = 1"))
        inside("run", "e.toml", "--workload", "mixed")
        # On a machine that is busy the open one's schedule may not hold.
        assert all(outcome.measure is not None for outcome in read_outcomes(tmp_path))
        items = [int(server.stats()["curr_items"]) for server in (one, two, three)]
        reads = [int(server.stats()["cmd_get"]) for server in (one, two, three)]
    assert sum(items) == 3000
    assert all(500 < count < 1700 for count in items), items
    assert all(reads)


def test_an_unknown_hashing_is_refused(inside: Inside, tmp_path: Path) -> None:
    text = EXPERIMENT.format(server="cluster:2:embedded:memory=16m")
    text = text.replace("?hashing=ketama", "?hashing=random")
    (tmp_path / "e.toml").write_text(text)
    inside("run", "e.toml", "--client", "native?hashing=random", "--workload", "mixed")
    assert {outcome.reason for outcome in read_outcomes(tmp_path)} == {
        'native: no hashing "random"'
    }
