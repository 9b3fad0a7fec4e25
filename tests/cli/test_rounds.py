"""Sittings end to end: real servers and workers play in turns, and their counts add up."""

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from cachemark.checks.fidelity.server import scripted
from cachemark.model.experiment_file import parse
from cachemark.runs.storage.store import latest_run, open_run
from tests.builders.outcomes import header
from tests.builders.small_experiments import ROUNDS, read_outcomes, write
from tests.builders.stored_runs import kept
from tests.cli.in_process import Inside
from tests.conftest import bad_worker


def test_arms_play_whole_squares_and_every_operation_is_counted(
    inside: Inside, tmp_path: Path
) -> None:
    ended = inside("run", write(tmp_path, ROUNDS, servers='["embedded", "memcached"]'))
    assert ended.returncode == 0, ended.stderr
    found = read_outcomes(tmp_path)
    assert len(found) == 2 * 4
    assert [outcome.verdict for outcome in found] == ["VALID"] * 8
    for outcome in found:
        assert outcome.rounds is not None
        assert outcome.measure is not None
        slices = outcome.rounds.slices
        lengths = {name: len(getattr(slices, name)) for name in slices.__struct_fields__}
        # Only several hosts have a skew.
        assert (lengths.pop("late_ns"), lengths.pop("skew_ns")) == (0, 0)
        assert len(set(lengths.values())) == 1
        counted = sum(op.ok for op in outcome.measure.operations.values())
        assert sum(slices.ops) == counted > 0
        assert sum(slices.elapsed_ns) == pytest.approx(outcome.measure.elapsed_ns, rel=0.01)
        # Each arm has every position, and each other arm as its predecessor, equally often.
        assert len(set(Counter(slices.position).values())) == 1
        assert all(ns > 0 for ns in slices.worker_cpu_ns)
        assert all(ns >= 0 for ns in slices.server_cpu_ns)
        # Idle processes use little: they do not poll during another arm's slice.
        assert sum(slices.idle_cpu_ns) < sum(slices.wall_ns) / 2


def test_a_failing_arm_leaves_the_sitting_and_others_go_on(inside: Inside, tmp_path: Path) -> None:
    gone = bad_worker("dies_in_a_slice")
    ended = inside("run", write(tmp_path, ROUNDS, clients=json.dumps(["native", gone]), blocks="1"))
    assert ended.returncode == 1
    states = Counter(
        (o.trial.cell.client.partition(":")[0], o.state) for o in read_outcomes(tmp_path)
    )
    assert states == {
        ("native", "measured"): 1,
        ("native#again", "measured"): 1,
        ("command", "failed"): 1,
    }
    (failed,) = [o for o in read_outcomes(tmp_path) if o.state == "failed"]
    assert "exited with status 7" in failed.reason


def test_what_is_missing_is_one_line_and_no_trial(inside: Inside, tmp_path: Path) -> None:
    name = write(tmp_path, ROUNDS, servers='["embedded", "memcached:binary=/no/memcached"]')
    ended = inside("run", name, "--blocks", "1")
    assert ended.returncode == 0, ended.stderr
    lines = [line for line in ended.stderr.splitlines() if "/no/memcached" in line]
    assert len(lines) == 1
    assert "binary=/no/memcached must be a program" in lines[0]
    assert "not played" in lines[0]
    assert "2 cells in turns" in ended.stderr


def test_a_killed_run_keeps_its_sittings_and_goes_on(inside: Inside, tmp_path: Path) -> None:
    name = write(tmp_path, ROUNDS, blocks="3", servers='["embedded", "embedded:io=blocking"]')
    command = [sys.executable, "-m", "cachemark", "run", name]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        for line in child.stderr:
            if "sitting 1 of 3 ended" in line:
                child.send_signal(signal.SIGKILL)
                break
        child.communicate()
    before = read_outcomes(tmp_path)
    assert {o.trial.block for o in before} >= {0}
    ended = inside("run", "--resume")
    assert ended.returncode == 0, ended.stderr
    after = read_outcomes(tmp_path)
    assert after[: len(before)] == before
    assert Counter(o.trial.block for o in after) == {0: 4, 1: 4, 2: 4}
    (folder,) = tmp_path.glob("results/*/")
    assert len(open_run(folder.name, tmp_path / "results").outcomes()) == 12


def test_slices_grow_until_they_have_room_for_operations(inside: Inside, tmp_path: Path) -> None:
    text = ROUNDS.replace('name = "one"', 'name = "one"\nthink = "20ms"')
    name = write(tmp_path, text, servers='["embedded", "embedded:io=blocking"]')
    ended = inside("run", name, "--blocks", "1")
    assert ended.returncode == 0, ended.stderr
    lengths_us = {outcome.rounds.length_us for outcome in read_outcomes(tmp_path) if outcome.rounds}
    assert len(lengths_us) == 1
    assert lengths_us.pop() >= 80_000


def test_operations_too_slow_for_slices_are_refused(inside: Inside, tmp_path: Path) -> None:
    text = ROUNDS.replace("get = 8, set = 1, mget = 1", "get = 1")
    with scripted("delay = { kind = 'constant', ms = 200 }", tmp_path, cpus="") as server:
        name = write(tmp_path, text, servers=json.dumps([f"remote:{server.address}"]))
        ended = inside("run", name, "--blocks", "1")
    assert ended.returncode == 1
    assert "ms, too long for slices" in ended.stderr
    assert "use --set design=trials" in ended.stderr


def test_slices_of_many_callers_grow_only_before_the_first_counted(
    inside: Inside, tmp_path: Path
) -> None:
    text = ROUNDS.replace("get = 8, set = 1, mget = 1", "get = 1")
    text = text.replace('name = "one"', 'name = "one"\nthreads = 4')
    with scripted("delay = { kind = 'constant', ms = 1 }", tmp_path, cpus="") as server:
        servers = json.dumps([f"remote:{server.address}"])
        # On a busy machine, operations may be longer than four slices in a row, but not than 50.
        name = write(tmp_path, text, servers=servers, warmup_ms="1000")
        ended = inside("run", name, "--blocks", "1")
        assert ended.returncode in (0, 1), ended.stderr
        first = read_outcomes(tmp_path)
        inside("run", "--resume", "--blocks", "2")
    arms = read_outcomes(tmp_path)
    assert len(arms) == 2 * len(first) == 4
    declared: dict[str, set[int]] = {}
    for arm in arms:
        assert arm.rounds is not None, arm.reason
        assert arm.rounds.operation_ns >= 1_000_000
        declared.setdefault(arm.trial.cell.client, set()).add(arm.rounds.operation_ns)
        # Where the machine is so busy that half a second is too short, the figures are withheld.
        counted_ns = 1000 * (arm.rounds.length_us - arm.rounds.lead_in_us)
        too_short = any(found.rule == "slice-bias" for found in arm.findings)
        assert too_short == (counted_ns < 125 * arm.rounds.operation_ns)
    assert len({arm.rounds.length_us for arm in arms if arm.rounds}) == 1
    assert all(len(times) == 1 for times in declared.values())
    report = latest_run(tmp_path / "results").folder / "report.md"
    assert "(as many callers need)" in report.read_text()


def test_a_finished_run_goes_on_with_more_sittings(inside: Inside, tmp_path: Path) -> None:
    name = write(tmp_path, ROUNDS, clients='["native", "python/socket"]')
    first = inside("run", name, "--blocks", "1")
    assert first.returncode == 0
    before = read_outcomes(tmp_path)
    (words,) = [line.split() for line in first.stdout.splitlines() if " --resume " in line]
    assert words[-2:] == ["--blocks", "2"]
    ended = inside(*words[1:])
    assert ended.returncode == 0, ended.stderr
    after = read_outcomes(tmp_path)
    assert [of.trial.index for of in after[: len(before)]] == [of.trial.index for of in before]
    assert Counter(of.trial.block for of in after) == {0: len(before), 1: len(before)}
    stored = latest_run(tmp_path / "results")
    assert (stored.header.experiment.blocks, stored.header.experiment.rounds.until) == (
        2,
        "settled",
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--client", "native"), "continues a run with the options that it was started with"),
        (("--blocks", "1"), "the run has 2"),
        (("--max", "10m"), "the run has no limit"),
    ],
)
def test_only_a_longer_run_is_made_of_a_stored_one(
    inside: Inside, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    kept(tmp_path / "results", header(parse(ROUNDS, "e.toml")), [])
    ended = inside("run", "made", "--resume", *options)
    assert ended.returncode == 2
    assert words in " ".join(ended.stderr.split())
