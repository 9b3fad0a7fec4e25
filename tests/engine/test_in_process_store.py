"""The embedded server's store as a client without a network."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cachemark.model.outcome import Outcome
from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside

# The number is that of the process that made the store.
_STORE = re.compile(r"cachemark-(?:store\.worker-)?(\d+)")
EXPERIMENT = """
name = "stores"
question = "?"
in_process = ["native/store?memory=16m&hash_power=12", "native/shm?memory=16m"]
blocks = 1

[[workloads]]
name = "w"
mix = { get = 8, set = 1, incr = 1 }
keys = { count = 1000, counters = 10 }
ops = 4000
records = 4000

[[loads]]
name = "l"
threads = 3

[timing]
warmup_ms = 0
"""


def _outcomes(folder: Path) -> dict[str, Outcome]:
    outcomes = read_outcomes(folder)
    return {outcome.trial.cell.client.partition("?")[0]: outcome for outcome in outcomes}


@pytest.fixture
def leaves_nothing() -> Iterator[None]:
    """No store is left that was not there before: somebody's killed run may have left one."""
    before = _left_behind()
    yield
    assert _left_behind() <= before


@pytest.mark.usefixtures("leaves_nothing")
def test_threads_and_processes_share_a_store(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    done = inside("run", "e.toml")
    assert done.returncode == 0, done.stderr
    outcomes = _outcomes(tmp_path)
    assert set(outcomes) == {"native/store", "native/shm"}
    for outcome in outcomes.values():
        assert outcome.verdict == "VALID", outcome.reasons
        assert outcome.measure is not None
        operations = outcome.measure.operations
        assert sum(kind.ok for kind in operations.values()) == 4000
        # All were stored first, by any of the callers.
        assert operations["get"].misses == 0
        assert operations["incr"].hits == operations["incr"].ok


@pytest.mark.usefixtures("leaves_nothing")
def test_php_processes_share_a_store(inside: Inside, tmp_path: Path) -> None:
    in_process = '["native/store?memory=16m&hash_power=12", "native/shm?memory=16m"]'
    php = EXPERIMENT.replace(in_process, '["php/shared-store?memory=16m&hash_power=12"]')
    (tmp_path / "e.toml").write_text(php)
    done = inside("run", "e.toml")
    (outcome,) = _outcomes(tmp_path).values()
    if outcome.state == "unsupported":
        pytest.skip(outcome.reason)
    assert done.returncode == 0, done.stderr
    assert outcome.verdict == "VALID", outcome.reasons
    assert outcome.measure is not None
    assert outcome.measure.operations["get"].misses == 0


def test_the_next_trial_removes_the_store_of_a_killed_one(inside: Inside, tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    names = (f"cachemark-{ended.pid}-{0:016x}", f"cachemark-{os.getpid()}-{0:016x}")
    abandoned, in_use = (Path("/dev/shm", name) for name in names)
    other = Path("/dev/shm", f"cachemark-{ended.pid}-notes")
    try:
        for path in (abandoned, in_use, other):
            path.touch()
        (tmp_path / "e.toml").write_text(EXPERIMENT)
        done = inside("run", "e.toml")
        assert done.returncode == 0, done.stderr
        assert [path.exists() for path in (abandoned, in_use, other)] == [False, True, True]
    finally:
        for path in (abandoned, in_use, other):
            path.unlink(missing_ok=True)


def _left_behind() -> set[str]:
    """Stores whose owner has ended, or is this process. Other tests may use theirs just now."""
    names = (path.name for path in Path("/dev/shm").iterdir())
    owned = [(name, found[1]) for name in names if (found := _STORE.match(name))]
    mine = str(os.getpid())
    return {name for name, pid in owned if pid == mine or not Path("/proc", pid).exists()}


@pytest.mark.parametrize(
    ("power", "reason"),
    [("twelve", "hash_power"), ("9", "not between 10 and 32"), ("30", "more than half")],
)
def test_an_option_that_a_store_lacks_is_said(
    inside: Inside, tmp_path: Path, power: str, reason: str
) -> None:
    (tmp_path / "e.toml").write_text(EXPERIMENT.replace("hash_power=12", f"hash_power={power}"))
    inside("run", "e.toml")
    outcome = _outcomes(tmp_path)["native/store"]
    assert outcome.state == "unsupported"
    assert reason in outcome.reason
