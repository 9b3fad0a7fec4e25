"""Runs on disk: what is kept, what a kill leaves, who may write, which programs they name."""

from pathlib import Path

import msgspec
import pytest

from cachemark.model.errors import UsageError
from cachemark.model.outcome import from_line, to_line
from cachemark.runs.storage.run_limits import named_programs
from cachemark.runs.storage.store import Run, create_run, latest_run, open_run
from tests.builders.outcomes import WORKLOAD, experiment, header, measured


def new_run(root: Path) -> Run:
    made = experiment(["a"])
    return create_run(root, made, host=header(made).host, command="test")


def test_what_is_appended_is_read_again(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    outcome = measured("a", 0, 100, index=3)
    with run:
        run.append([outcome])
    again = open_run(run.id, tmp_path)
    assert again.outcomes() == [outcome]
    assert again.done() == {3}
    assert again.header == run.header
    assert from_line(to_line(outcome)) == outcome


def test_a_torn_line_is_dropped_before_the_next(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    with run:
        run.append([measured("a", 0, 100)])
    path = run.folder / "outcomes.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"run":"to')
    assert len(run.outcomes()) == 1
    with run:
        run.append([measured("a", 1, 100, index=1)])
    assert path.read_bytes().startswith(whole)
    assert len(run.outcomes()) == 2


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    (run.folder / "outcomes.jsonl").write_bytes(b"{}\n")
    with pytest.raises(UsageError, match=r"outcomes\.jsonl:1: not an outcome"):
        run.outcomes()


def test_a_run_has_one_writer(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    with run, pytest.raises(UsageError, match="another process"), open_run(run.id, tmp_path):
        pass
    with pytest.raises(RuntimeError):
        run.append([measured("a", 0, 100)])


def test_runs_made_at_once_have_names_of_their_own(tmp_path: Path) -> None:
    runs = [new_run(tmp_path) for _ in range(3)]
    assert len({run.id for run in runs}) == 3
    assert latest_run(tmp_path).id == sorted(run.id for run in runs)[-1]


def test_no_run_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        latest_run(tmp_path)
    with pytest.raises(UsageError, match="no run 'x'"):
        open_run("x", tmp_path)


@pytest.mark.parametrize(
    "client",
    [
        "command:/bin/sh",
        "python/pymemcache@1.0",
        "python/pymemcache@../fork",
        "python/pymemcache@1.0@defaults",
        "python/pymemcache@1.0?depth=2",
    ],
)
def test_a_client_that_would_be_started_or_installed_is_named(client: str) -> None:
    assert named_programs(experiment(clients=[client])) == [f"client {client}"]


@pytest.mark.parametrize("client", ["native", "python/pymemcache@defaults", "go/grafana?mode=a@b"])
def test_a_client_that_is_set_up_here_is_not_named(client: str) -> None:
    assert named_programs(experiment(clients=[client])) == []


def test_a_trace_that_would_be_read_is_named() -> None:
    """It may be any file of this machine, whose keys are sent to a server."""
    grid = experiment(clients=["native"])
    traced = msgspec.structs.replace(WORKLOAD, trace="/root/secret", mix={})
    grid = msgspec.structs.replace(grid, workloads=[WORKLOAD, traced])
    assert named_programs(grid) == ["trace /root/secret"]
