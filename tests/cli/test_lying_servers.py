"""A server that loses writes, or answers with older values, is INVALID, whoever measures it."""

import json
import shutil
import sys
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from cachemark.model.outcome import Outcome
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


FURTHER = pytest.mark.slow("plays a further lie, with the clients that the first has not met")


@pytest.mark.parametrize(
    "lie", [0, pytest.param(1, marks=FURTHER), pytest.param(2, marks=FURTHER)], ids=LIES
)
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
    clients = ["native", OTHERS[0]]
    work |= {"clients": json.dumps(clients), "servers": json.dumps(servers)}
    inside("run", write(tmp_path, text, **work))
    found = {(o.trial.cell.client, o.trial.cell.server): o for o in read_outcomes(tmp_path)}
    assert found.keys() == set(product(clients, servers))
    for (_, server), outcome in found.items():
        accused = "server-bytes" in {finding.rule for finding in outcome.findings}
        assert accused == (server not in {"memcached", "embedded"}), outcome
        assert outcome.verdict == "INVALID" or not accused


def rounds_with_enough_ops(
    inside: Inside, folder: Path, text: str, least: int, *options: str, **work: str
) -> list[Outcome]:
    """The outcomes of rounds that become longer until each has counted enough operations."""
    outcomes: list[Outcome] = []
    for measure_ms in ("600", "2400", "9600"):
        shutil.rmtree(folder / "results", ignore_errors=True)
        name = write(folder, text, measure_ms=measure_ms, **changed(40, 4000), **work)
        ended = inside("run", name, *options)
        outcomes = [o for o in read_outcomes(folder) if o.measure is not None]
        assert outcomes, ended.stderr
        measures = [o.measure for o in outcomes if o.measure is not None]
        ops = [sum(of.attempts for of in each.operations.values()) for each in measures]
        if min(ops) >= least:
            break
    return outcomes


def test_rounds_find_the_lies_of_callers_in_threads_and_processes(
    inside: Inside, tmp_path: Path
) -> None:
    # An older value would show in few reads, as any of the callers may have written it.
    servers = ["memcached", liar("lost 80")]
    text = ROUNDS.replace('name = "one"', 'name = "four"\nthreads = 2\nprocesses = 2')
    text = text.replace('twice = "native"\n', "")
    work = {"servers": json.dumps(servers), "blocks": "1"}
    found = Counter(
        (o.trial.cell.server, any("wrong value" in reason for reason in o.reasons))
        for o in rounds_with_enough_ops(inside, tmp_path, text, 500, **work)
    )
    assert found == {(server, server != "memcached"): 1 for server in servers}
