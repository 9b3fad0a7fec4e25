"""A server that loses writes, or answers with older values, is INVALID, whoever measures it."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from cachemark.endpoints.clients import Client
from tests.builders.small_experiments import PATIENT, ROUNDS, TRIALS, read_outcomes, write
from tests.conftest import ROOT, Cli
from tests.workers.test_generations import CLIENTS, KEYS

pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)

# Of a window of 8,000 operations, half of them writes.
LIES = [f"lost {KEYS}", f"lost {KEYS + 2000}", f"stale {KEYS}"]


def changed(keys: int, *also: str) -> dict[str, str]:
    """Half reads, half writes of so many keys; `also` are further settings of the workload."""
    return {
        "mix": "\n".join(["{ get = 1, set = 1 }", *also]),
        "keys": f"{{ count = {keys} }}",
        "values": '{ size = "100" }',
        "records": "4000",
    }


def liar(lie: str) -> str:
    """The server that tells a lie, as an experiment names it."""
    return f"command:{sys.executable} {ROOT / 'tests/lying_server.py'} {lie} {{port}}"


@pytest.mark.parametrize("client", [each for each in CLIENTS if each.id != "reference"])
def test_each_lie_about_writes_is_invalid(cli: Cli, client: Client, tmp_path: Path) -> None:
    servers = json.dumps(["memcached", *map(liar, LIES)])
    text, clients = TRIALS.replace(*PATIENT), json.dumps([client.id])
    work = changed(KEYS, "ops = 8000")
    ended = cli(
        "run", write(tmp_path, text, clients=clients, servers=servers, blocks="1", **work),
        timeout_s=300,
    )  # fmt: skip
    found = {outcome.trial.cell.server: outcome for outcome in read_outcomes(tmp_path)}
    honest = found.pop("memcached")
    assert not any("wrong value" in reason for reason in honest.reasons), honest.reasons
    assert found.keys() == set(map(liar, LIES))
    for outcome in found.values():
        assert outcome.verdict == "INVALID", outcome.trial.cell.server
        assert any("replies with a wrong value" in reason for reason in outcome.reasons)
    assert "replies with a wrong value" in ended.stderr


def test_rounds_find_the_lies_of_callers_in_threads_and_processes(cli: Cli, tmp_path: Path) -> None:
    lies = ["lost 40", "lost 80", "stale 40"]
    servers = json.dumps(["memcached", *map(liar, lies)])
    text = ROUNDS.replace('name = "one"', 'name = "four"\nthreads = 2\nprocesses = 2')
    name = write(tmp_path, text, servers=servers, blocks="1", measure_ms="1200", **changed(40))
    cli("run", name, timeout_s=300)
    found = Counter(
        (o.trial.cell.server, any("wrong value" in reason for reason in o.reasons))
        for o in read_outcomes(tmp_path)
    )
    assert found == {("memcached", False): 2} | {(liar(lie), True): 2 for lie in lies}
