"""A host whose worker lies about its times is found and named."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import pytest

from cachemark.host import process
from cachemark.model.outcome import Outcome
from tests.agents.conftest import SharedAgents
from tests.builders.small_experiments import PATIENT, ROUNDS, TRIALS, read_outcomes, write
from tests.cli.in_process import Inside, inside
from tests.conftest import ROOT

__all__ = ["inside"]

pytestmark = [
    pytest.mark.skipif(shutil.which("memcached") is None, reason="apt-get install memcached"),
    pytest.mark.xdist_group("agents"),
]

TWO = (("both", "server+client", "127.0.0.1"), ("c", "client", "127.0.0.2"))
WORKER = [sys.executable, str(ROOT / "tests/runs/trials/lying_worker.py")]


def _rules(
    inside: Inside, shared_agents: SharedAgents, folder: Path, text: str, lie: str, *options: str
) -> tuple[Outcome, set[str]]:
    """The outcome of a client that tells this lie, and the rules by which its times are wrong."""
    own = shlex.join([*WORKER, lie, process.binary_path(), "worker", "network"])
    write(folder, text.replace("blocks = 2", 'blocks = 1\nnoise = "note"'))
    file = str(shared_agents.hosts_file(folder, hosts=TWO))
    ended = inside(
        "run", "experiment.toml", "--hosts", file, "--client", f"command:{own}", *options
    )
    outcomes = [o for o in read_outcomes(folder) if o.trial.cell.client.startswith("command")]
    assert outcomes, ended.stderr
    assert outcomes[0].state == "measured", outcomes[0].reason
    found = {finding.rule for finding in outcomes[0].findings}
    return outcomes[0], found & {"own-clock", "own-cpu"}


@pytest.mark.parametrize(
    ("design", "lie"),
    [
        ("trials", "honest"),
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
        text = TRIALS.replace(*PATIENT).replace("measure_ms = 100", "measure_ms = 2500")
    else:
        text = ROUNDS.replace("slice_ms = 20", "slice_ms = 100").replace("= 240", "= 1200")
    # So many operations take more CPU time than is tolerated, however busy the machine is.
    options = ["--ops", "200000"] if lie.startswith("cpu") else []
    outcome, found = _rules(inside, shared_agents, tmp_path, text, lie, *options)
    assert found == rules, outcome.findings
    assert (outcome.verdict == "INVALID") >= bool(rules)
    # It is said which host lies, and no other one is accused.
    texts = [each.text for each in outcome.findings if each.rule in rules]
    assert all(" on c" in text for text in texts if " on " in text)
    assert not rules or any(" on c" in text for text in texts)
