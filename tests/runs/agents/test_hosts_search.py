"""A search for the highest rate, played over one host and over two: a capacity plan."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from cachemark.model.merging import merge_kinds
from cachemark.model.outcome import Outcome
from tests.builders.small_experiments import PATIENT, TRIALS, read_outcomes, write
from tests.cli.in_process import Inside
from tests.runs.agents.conftest import SharedAgents

SEARCH = (
    TRIALS.replace(*PATIENT)
    .replace("blocks = 2", 'blocks = 1\nnoise = "note"\nsearch = "p99<500ms"')
    .replace('name = "one"\n', 'name = "one"\nschedule = "poisson"\nhosts = [1, 2]\n')
)


@pytest.mark.slow("two searches play eight trials each over hosts")
@pytest.mark.xdist_group("agents")
def test_as_many_hosts_play_each_step_as_its_load_names(
    inside: Inside, shared_agents: SharedAgents, tmp_path: Path
) -> None:
    write(tmp_path, SEARCH)
    hosts = str(shared_agents.hosts_file(tmp_path))
    ended = inside("run", "experiment.toml", "--hosts", hosts)
    outcomes = read_outcomes(tmp_path)
    for outcome in outcomes:
        assert outcome.state == "measured", ended.stderr
        parts = [part for part in outcome.hosts if part.measure is not None]
        assert [part.name for part in parts] == ["both", "c"][: outcome.load.hosts]
        assert outcome.measure is not None
        of_hosts = merge_kinds([part.measure.operations for part in parts if part.measure])
        assert of_hosts == merge_kinds([outcome.measure.operations])
    for number in (1, 2):
        check_steps([outcome for outcome in outcomes if outcome.load.hosts == number])
    assert "highest rate" in ended.stdout
    report = next(tmp_path.glob("results/*/report.md")).read_text(encoding="utf-8")
    assert "Capacity with p99<500ms" in report
    assert "or of as many as a load names" in report


def check_steps(steps: Sequence[Outcome]) -> None:
    """A closed loop, then rates below what it did."""
    first, *others = steps
    assert first.load.schedule == "closed"
    assert first.measure is not None
    done = sum(operation.ok for operation in first.measure.operations.values())
    most = done * 1e9 / first.measure.elapsed_ns
    rates = [step.load.rate for step in others]
    assert rates
    assert all(rate is not None and rate < most for rate in rates)
    # Three misses decide, beside one play that met the objective and two that were spoiled.
    assert max(map(rates.count, rates)) <= 6
