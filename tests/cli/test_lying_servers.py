"""A server that loses writes, or answers with older values, is INVALID, whoever measures it."""

import json
import shutil
import sys
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from tests.builders.small_experiments import PATIENT, ROUNDS, TRIALS, read_outcomes, write
from tests.cli.in_process import Inside
from tests.conftest import ROOT
from tests.workers.test_generations import CLIENTS

pytestmark = pytest.mark.skipif(
    shutil.which("memcached") is None, reason="apt-get install memcached"
)

# This many are honest, so the run finds the server compatible before it lies.
KEYS = 400
# Of a window of 2,000 operations, half of them writes.
LIES = [f"lost {KEYS}", f"lost {KEYS + 500}", f"stale {KEYS}"]
OTHERS = [each.id for each in CLIENTS if each.id not in {"reference", "native"}]


def changed(keys: int, records: int, *also: str) -> dict[str, str]:
    """Half reads, half writes of these keys; `also` are further settings of the workload."""
    return {
        "mix": "\n".join(["{ get = 1, set = 1 }", *also]),
        "keys": f"{{ count = {keys} }}",
        "values": '{ size = "100" }',
        "records": str(records),
    }


def liar(lie: str) -> str:
    """The server that tells a lie, as an experiment names it."""
    return f"command:{sys.executable} {ROOT / 'tests/lying_server.py'} {lie} {{port}}"


@pytest.mark.parametrize("lie", range(len(LIES)), ids=LIES)
def test_each_lie_about_writes_is_invalid(inside: Inside, lie: int, tmp_path: Path) -> None:
    """Every client meets a lie here, and every lie in tests/workers/test_generations.py."""
    clients = ["native", *OTHERS[lie :: len(LIES)]]
    servers = ["memcached", liar(LIES[lie])]
    text, work = TRIALS.replace(*PATIENT), changed(KEYS, 1000, "ops = 2000")
    work |= {"clients": json.dumps(clients), "servers": json.dumps(servers), "blocks": "1"}
    ended = inside("run", write(tmp_path, text, **work))
    found = {(o.trial.cell.client, o.trial.cell.server): o for o in read_outcomes(tmp_path)}
    assert found.keys() == set(product(clients, servers))
    for (_, server), outcome in found.items():
        accused = any("replies with a wrong value" in reason for reason in outcome.reasons)
        assert accused == (server != "memcached"), outcome
        assert outcome.verdict == "INVALID" or not accused
    assert "replies with a wrong value" in ended.stderr


def test_a_server_that_drops_values_which_nobody_reads_is_invalid(
    inside: Inside, tmp_path: Path
) -> None:
    servers = ["memcached", "embedded", liar(f"short {KEYS}")]
    text = TRIALS.replace(*PATIENT)
    work = changed(KEYS, 1000, "ops = 2000") | {"mix": "{ set = 1 }\nops = 2000", "blocks": "1"}
    # The server's own account of its memory accuses it, whoever writes.
    clients = ["native", *OTHERS[:2]]
    work |= {"clients": json.dumps(clients), "servers": json.dumps(servers)}
    inside("run", write(tmp_path, text, **work))
    found = {(o.trial.cell.client, o.trial.cell.server): o for o in read_outcomes(tmp_path)}
    assert found.keys() == set(product(clients, servers))
    for (_, server), outcome in found.items():
        accused = "server-bytes" in {finding.rule for finding in outcome.findings}
        assert accused == (server not in {"memcached", "embedded"}), outcome
        assert outcome.verdict == "INVALID" or not accused


def test_rounds_find_the_lies_of_callers_in_threads_and_processes(
    inside: Inside, tmp_path: Path
) -> None:
    lies = ["lost 40", "lost 80", "stale 40"]
    servers = json.dumps(["memcached", *map(liar, lies)])
    text = ROUNDS.replace('name = "one"', 'name = "four"\nthreads = 2\nprocesses = 2')
    name = write(
        tmp_path, text, servers=servers, blocks="1", measure_ms="1200", **changed(40, 4000)
    )
    inside("run", name)
    found = Counter(
        (o.trial.cell.server, any("wrong value" in reason for reason in o.reasons))
        for o in read_outcomes(tmp_path)
    )
    assert found == {("memcached", False): 2} | {(liar(lie), True): 2 for lie in lies}
