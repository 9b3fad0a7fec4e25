"""Over hosts, reads find the writes that a server loses, and older values, as on one host."""

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from cachemark.host import process
from cachemark.model.outcome import Outcome
from tests.builders.small_experiments import PATIENT, ROUNDS, TRIALS, read_outcomes, write
from tests.cli.in_process import Inside
from tests.cli.test_lying_servers import KEYS, changed, liar, rounds_with_enough_ops
from tests.conftest import ROOT
from tests.runs.agents.conftest import SharedAgents
from tests.runs.trials.test_lying_workers import ENOUGH_CPU_NS

pytestmark = [
    pytest.mark.skipif(shutil.which("memcached") is None, reason="apt-get install memcached"),
    pytest.mark.xdist_group("agents"),
]

# One host of clients, whose host plays the sitting, and two, which play each slice together.
ONE = (("both", "server", "127.0.0.1"), ("c", "client", "127.0.0.2"))
TWO = (("both", "server+client", "127.0.0.1"), ("c", "client", "127.0.0.2"))

EACH_PAIR = pytest.mark.slow("plays each design with each set of hosts")


@pytest.mark.parametrize(
    ("design", "hosts"),
    [
        pytest.param("trials", ONE, id="trials-one-host-of-clients"),
        pytest.param("rounds", TWO, id="rounds-two"),
        pytest.param("trials", TWO, id="trials-two", marks=EACH_PAIR),
        pytest.param("rounds", ONE, id="rounds-one-host-of-clients", marks=EACH_PAIR),
    ],
)
def test_reads_find_the_lies_over_hosts(
    inside: Inside,
    shared_agents: SharedAgents,
    tmp_path: Path,
    hosts: tuple[tuple[str, str, str], ...],
    design: str,
) -> None:
    text = TRIALS.replace(*PATIENT) if design == "trials" else ROUNDS
    text = text.replace("blocks = 2", 'blocks = 1\nnoise = "note"').replace(
        'twice = "native"\n', ""
    )
    options = ("--hosts", str(shared_agents.hosts_file(tmp_path, hosts=hosts)))
    lies = [liar(f"{lie} {KEYS if design == 'trials' else 40}") for lie in ("lost", "stale")]
    servers = json.dumps(["memcached", *lies])
    if design == "trials":
        write(tmp_path, text, servers=servers, **changed(KEYS, 1000, "ops = 2000"))
        inside("run", "experiment.toml", *options)
        outcomes = [o for o in read_outcomes(tmp_path) if o.measure is not None]
    else:
        work = {"servers": servers, "slice_ms": "100"}
        outcomes = rounds_with_enough_ops(inside, tmp_path, text, 6000, *options, **work)
    accused = {
        o.trial.cell.server: any("wrong value" in reason for reason in o.reasons) for o in outcomes
    }
    assert accused == {"memcached": False} | dict.fromkeys(lies, True)


WORKER = [sys.executable, str(ROOT / "tests/runs/trials/lying_worker.py")]


def _rules(
    inside: Inside,
    shared_agents: SharedAgents,
    folder: Path,
    text: str,
    lie: str,
    *options: str,
    hosts: tuple[tuple[str, str, str], ...] = TWO,
) -> tuple[Outcome, set[str]]:
    """The outcome of a client that tells this lie, and the rules by which it is wrong."""
    own = shlex.join([*WORKER, lie, process.binary_path(), "worker", "network"])
    write(folder, text.replace("blocks = 2", 'blocks = 1\nnoise = "note"'))
    file = str(shared_agents.hosts_file(folder, hosts=hosts))
    ended = inside(
        "run", "experiment.toml", "--hosts", file, "--client", f"command:{own}", *options
    )
    assert list(folder.glob("results/*/outcomes.jsonl")), ended.stderr
    outcomes = [o for o in read_outcomes(folder) if o.trial.cell.client.startswith("command")]
    assert outcomes, ended.stderr
    assert outcomes[0].state == "measured", outcomes[0].reason
    found = {finding.rule for finding in outcomes[0].findings}
    return outcomes[0], found & {"own-clock", "own-cpu", "server-counters"}


def _rules_of_cpu(
    inside: Inside, shared_agents: SharedAgents, folder: Path, text: str, lie: str
) -> tuple[Outcome, set[str]]:
    """The same in longer and longer windows, until enough CPU time of the liar was seen."""
    for measure_ms in ("2500", "9000", "27000"):
        outcome, found = _rules(
            inside, shared_agents, folder, text, lie, "--measure-ms", measure_ms
        )
        seen = [part.observed.cpu_ns or 0 for part in outcome.hosts if part.observed]
        if min(seen, default=0) >= ENOUGH_CPU_NS:
            break
        shutil.rmtree(folder / "results")
    return outcome, found


@pytest.mark.parametrize(
    ("lie", "rule"), [("scaled", "own-clock"), ("half", "server-counters"), ("cpu", "own-cpu")]
)
def test_a_lie_that_only_the_server_counters_show_is_found(
    inside: Inside, shared_agents: SharedAgents, tmp_path: Path, lie: str, rule: str
) -> None:
    """What a busy machine shows of a short window is too little: it becomes longer."""
    text = TRIALS.replace(*PATIENT)
    for ops in ("4000", "40000", "400000"):
        outcome, found = _rules(inside, shared_agents, tmp_path, text, lie, "--ops", ops, hosts=ONE)
        if rule in found:
            break
        shutil.rmtree(tmp_path / "results")
    assert rule in found, outcome.findings
    assert outcome.verdict == "INVALID"


@pytest.mark.parametrize(
    ("design", "lie"),
    [
        pytest.param("trials", "honest", marks=EACH_PAIR),
        ("trials", "clock-of-one"),
        ("trials", "cpu-of-one"),
        ("rounds", "honest"),
        ("rounds", "clock-of-one"),
    ],
)
def test_one_host_that_lies_about_its_times_is_found(
    inside: Inside,
    shared_agents: SharedAgents,
    tmp_path: Path,
    design: str,
    lie: str,
) -> None:
    rules = {
        "honest": set[str](), "clock-of-one": {"own-clock"}, "cpu-of-one": {"own-cpu"},
    }[lie]  # fmt: skip
    if design == "trials":
        text = TRIALS.replace(*PATIENT).replace("measure_ms = 300", "measure_ms = 500")
    else:
        text = ROUNDS.replace("slice_ms = 20", "slice_ms = 100").replace("= 240", "= 1200")
    if lie == "cpu-of-one":
        outcome, found = _rules_of_cpu(inside, shared_agents, tmp_path, text, lie)
    else:
        outcome, found = _rules(inside, shared_agents, tmp_path, text, lie)
    assert found == rules, outcome.findings
    assert (outcome.verdict == "INVALID") >= bool(rules)
    # It is said which host lies, and no other one is accused.
    texts = [each.text for each in outcome.findings if each.rule in rules]
    assert all(" on c" in text for text in texts if " on " in text)
    assert not rules or any(" on c" in text for text in texts)
