"""A search for the highest rate, played over two hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachemark.endpoints.fleet import merge_kinds
from tests.agents.conftest import SharedAgents
from tests.builders.small_experiments import PATIENT, TRIALS, read_outcomes, write
from tests.cli.in_process import Inside, inside

__all__ = ["inside"]

SEARCH = (
    TRIALS.replace(*PATIENT)
    .replace("blocks = 2", 'blocks = 1\nnoise = "note"\nsearch = "p99<500ms"')
    .replace('name = "one"\n', 'name = "one"\nschedule = "poisson"\n')
)


@pytest.mark.slow("a search plays eight trials over hosts")
@pytest.mark.xdist_group("agents")
def test_each_step_is_played_by_both_hosts(
    inside: Inside, shared_agents: SharedAgents, tmp_path: Path
) -> None:
    write(tmp_path, SEARCH)
    hosts = str(shared_agents.hosts_file(tmp_path))
    ended = inside("run", "experiment.toml", "--hosts", hosts)
    first, *steps = read_outcomes(tmp_path)
    assert first.load.schedule == "closed", ended.stderr
    assert first.measure is not None
    done = sum(operation.ok for operation in first.measure.operations.values())
    most = done * 1e9 / first.measure.elapsed_ns
    rates = [step.load.rate for step in steps]
    assert steps
    assert all(rate is not None and rate < most for rate in rates)
    assert max(map(rates.count, rates)) <= 3
    for outcome in (first, *steps):
        assert outcome.state == "measured", outcome.reason
        parts = [part for part in outcome.hosts if part.measure is not None]
        assert [part.name for part in parts] == ["both", "c"]
        assert outcome.measure is not None
        of_hosts = merge_kinds([part.measure.operations for part in parts if part.measure])
        assert of_hosts == outcome.measure.operations
    assert "highest rate" in ended.stdout
