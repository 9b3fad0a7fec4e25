"""A run over several hosts measures what a run on one does, and says which host did what."""

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from cachemark.cli.hosts_run import for_hosts, for_one_host
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Placement
from cachemark.model.experiment_file import parse
from cachemark.model.outcome import Outcome, from_line
from cachemark.model.protocol import Done
from cachemark.runs.agents.hosts_file import load_hosts
from tests.cli.in_process import Inside
from tests.runs.agents.conftest import TWO_HOSTS, SharedAgents
from tests.runs.agents.hosts_files import write_hosts

# Two processes play the whole tape once; over two hosts it is one process on each.
EXPERIMENT = """
name = "once"
question = "Do two hosts what one does?"
clients = ["native"]
servers = ["embedded"]
blocks = 1
noise = "note"
design = "trials"
[[workloads]]
name = "once"
mix = {{ get = 9, set = 1 }}
records = 5001
passes = 1
warmup_ms = 0
keys = {{ count = 1000 }}
[[loads]]
name = "all"
processes = {processes}
"""


def played(folder: Path) -> Outcome:
    """The only outcome of the only run."""
    (path,) = folder.glob("*/outcomes.jsonl")
    (line,) = path.read_bytes().splitlines()
    return from_line(line)


def counts(done: Done | None) -> Counter[str]:
    """Every count of a phase, by kind of operation and name."""
    assert done is not None
    found: Counter[str] = Counter()
    for kind, operation in done.operations.items():
        for name in ("attempts", "ok", "hits", "misses", "keys", "value_bytes", "key_bytes"):
            found[f"{kind} {name}"] = getattr(operation, name)
    return found


@pytest.mark.xdist_group("agents")
def test_two_hosts_do_to_the_count_what_one_does(
    inside: Inside, shared_agents: SharedAgents, tmp_path: Path
) -> None:
    for processes in (1, 2):
        text = EXPERIMENT.format(processes=processes)
        (tmp_path / f"{processes}.toml").write_text(text, encoding="utf-8")
    hosts = str(shared_agents.hosts_file(tmp_path))
    over = inside("run", "1.toml", "--hosts", hosts, "--runs", "over")
    assert over.returncode == 0, over.stderr
    here = inside("run", "2.toml", "--runs", "here")
    assert here.returncode == 0, here.stderr
    several, one = played(tmp_path / "over"), played(tmp_path / "here")
    assert several.tape == one.tape
    assert one.tape is not None
    assert one.tape.arguments[-2:] == ["--generations", "2"]
    assert counts(several.measure) == counts(one.measure)
    assert counts(several.prefill) == counts(one.prefill)
    parts = [part for part in several.hosts if "client" in part.roles]
    assert [part.name for part in parts] == ["both", "c"]
    assert counts(parts[0].measure) + counts(parts[1].measure) == counts(several.measure)
    assert counts(parts[0].measure)["get attempts"] > 0 < counts(parts[1].measure)["get attempts"]
    assert several.server_use is not None
    assert several.start_skew_ns is not None
    report = (next((tmp_path / "over").iterdir()) / "report.md").read_text(encoding="utf-8")
    assert "hosts: both server+client, c client" in report
    assert "the hosts of a trial started at most" in report
    assert "rates belong to all 2 hosts of clients together" in report


def test_a_search_for_a_rate_is_played_over_hosts(tmp_path: Path) -> None:
    text = EXPERIMENT.format(processes=1).replace("passes = 1\n", "")
    text = text.replace('design = "trials"', 'search = "p99<1ms"')
    searching = parse(f'{text}schedule = "poisson"', "e.toml")
    hosts = load_hosts(write_hosts(tmp_path, TWO_HOSTS))
    assert for_hosts(searching, hosts).search == "p99<1ms"
    assert for_hosts(searching, hosts).design == "trials"


def test_workers_do_not_warm_the_server_of_another_host(tmp_path: Path) -> None:
    text = EXPERIMENT.format(processes=1).replace("passes = 1\n", "server_warmup_ops = 9\n")
    with pytest.raises(UsageError, match="workers of one host warm the server of") as caught:
        for_hosts(parse(text, "e.toml"), load_hosts(write_hosts(tmp_path, TWO_HOSTS)))
    assert "--hosts" in caught.value.remedy


def test_a_load_is_made_by_hosts_that_are_there(tmp_path: Path) -> None:
    experiment = parse(f"{EXPERIMENT.format(processes=1)}hosts = 3\n", "e.toml")
    two = load_hosts(write_hosts(tmp_path, TWO_HOSTS))
    with pytest.raises(UsageError, match="by 3 hosts, and the hosts file has 2 with the role cli"):
        for_hosts(experiment, two)
    with pytest.raises(UsageError, match="load 'all' says how many hosts make it"):
        for_one_host(experiment)


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"awake": True}, "keeps the CPUs of one host awake"),
        ({"placement": Placement(server="0")}, "its placement names the CPUs of one host"),
    ],
)
def test_what_belongs_to_one_host_is_refused(
    tmp_path: Path, setting: dict[str, object], text: str
) -> None:
    experiment = parse(EXPERIMENT.format(processes=1), "e.toml")
    changed = msgspec.structs.replace(experiment, **setting)
    with pytest.raises(UsageError, match=text) as caught:
        for_hosts(changed, load_hosts(write_hosts(tmp_path, TWO_HOSTS)))
    assert "--hosts" in caught.value.remedy
