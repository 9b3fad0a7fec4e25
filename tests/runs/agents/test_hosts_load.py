"""Hosts that make the load beside a host that measures: both are counted, and kept apart."""

from pathlib import Path

import pytest

from cachemark.cli.hosts_run import for_hosts
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Load, Measure
from cachemark.model.experiment_file import parse
from cachemark.model.hosts import left_after
from cachemark.runs.agents.hosts_file import load_hosts
from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside
from tests.runs.agents.conftest import TWO_HOSTS, SharedAgents
from tests.runs.agents.hosts_files import HostRows, write_hosts
from tests.runs.trials.test_measuring_client import LOADED, counter, keys_and_stores

LOAD_APART = (("both", "server+client", "127.0.0.1"), ("c", "load", "127.0.0.2"))
TWO_LOADS = (*LOAD_APART, ("d", "load", "127.0.0.3"))


@pytest.mark.xdist_group("agents")
def test_a_host_makes_the_load_and_another_measures(
    inside: Inside, shared_agents: SharedAgents, tmp_path: Path
) -> None:
    text = LOADED.replace("measure_ms = 300", "measure_ms = 400")
    (tmp_path / "experiment.toml").write_text(text, encoding="utf-8")
    hosts = str(shared_agents.hosts_file(tmp_path, hosts=LOAD_APART))
    ended = inside("run", "experiment.toml", "--hosts", hosts)
    (played,) = read_outcomes(tmp_path)
    assert played.state == "measured", ended.stderr
    assert played.measure is not None
    assert played.generated is not None
    # As on one host (tests/runs/trials/test_measuring_client.py): all of the tape.
    generated = played.generated
    assert sum(each.attempts for each in generated.operations.values()) + generated.unsent == 120
    parts = {part.name: part for part in played.hosts}
    assert parts["both"].roles == ["server", "client"]
    assert parts["both"].measure == played.measure
    assert parts["c"].roles == ["load"]
    assert parts["c"].measure == generated
    reads, stores = map(sum, zip(*map(keys_and_stores, (played.measure, generated)), strict=True))
    assert (counter(played, "cmd_get"), counter(played, "cmd_set")) == (reads, stores)
    assert "server-counters" not in {found.rule for found in played.findings}
    assert "host-differs" not in {found.rule for found in played.findings}


@pytest.mark.parametrize(
    ("rows", "measured", "text"),
    [
        (TWO_HOSTS, True, "load 'one' has a measuring client, and no host has the role load"),
        (LOAD_APART, False, "host 'c' has the role load, and load 'one' has no measuring client"),
    ],
)
def test_a_role_without_a_host_is_one_clear_error(
    tmp_path: Path, rows: HostRows, measured: bool, text: str
) -> None:
    written = LOADED if measured else LOADED.replace("measure = { rate = 100 }\n", "")
    with pytest.raises(UsageError, match=text) as caught:
        for_hosts(parse(written, "e.toml"), load_hosts(write_hosts(tmp_path, rows)))
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("rows", "lost", "named", "left"),
    [
        (TWO_LOADS, "d", None, ["both", "c"]),
        (TWO_LOADS, "c", 1, ["both", "d"]),
        (TWO_LOADS, "d", 2, None),
        (LOAD_APART, "c", None, None),
        (TWO_LOADS, "both", None, None),
    ],
)
def test_the_load_goes_on_with_the_generators_that_are_left(
    tmp_path: Path, rows: HostRows, lost: str, named: int | None, left: list[str] | None
) -> None:
    """As many hosts as the load names have to be left."""
    hosts = load_hosts(write_hosts(tmp_path, rows, on_lost="continue"))
    load = Load(name="open", schedule="uniform", rate=100, measure=Measure(), hosts=named)
    found = left_after(hosts, [lost], load)
    assert (found and [host.name for host in found.hosts]) == left
