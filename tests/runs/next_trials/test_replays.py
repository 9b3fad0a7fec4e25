"""Next are replays, the steps of searches, and no more of a cell that is given up."""

import json
import sys
from pathlib import Path

import msgspec
import pytest

from cachemark.analysis.giving_up import given_up, may_be_replayed, reason_without_ports
from cachemark.host.process import binary_path
from cachemark.model.outcome import Finding, Outcome, Verdict, Withheld
from cachemark.model.plan import Plan, make_plan
from cachemark.report.build import build
from cachemark.runs.next_trials.schedule import RateStep, RateSteps, next_replays
from cachemark.runs.storage.run_limits import check_run
from tests.builders.outcomes import experiment, header, measured
from tests.builders.search_outcomes import at_rate, closed, search_experiment
from tests.builders.small_experiments import TRIALS, read_outcomes, write
from tests.cli.in_process import Inside
from tests.conftest import ROOT, Cli, bad_worker

LIMITS = {"a": 700, "b": 1500}


def plan(blocks: int = 3) -> Plan:
    made = experiment(["a", "b"], blocks)
    return make_plan(msgspec.structs.replace(made, until_valid=blocks))


def spoiled(client: str, block: int, rule: str, *, verdict: Verdict = "INVALID") -> Outcome:
    made = measured(client, block, 1000)
    weight = "note" if verdict == "VALID" else verdict
    found = Finding(rule=rule, weight=weight, text=rule)
    return msgspec.structs.replace(made, verdict=verdict, findings=[found], reasons=[rule])


def failed(client: str, block: int, reason: str, *, ready: bool) -> Outcome:
    made = measured(client, block, 1000)
    worker = made.worker if ready else None
    return msgspec.structs.replace(
        made, state="failed", verdict=None, measure=None, worker=worker, reason=reason
    )


@pytest.mark.parametrize(
    "rule", ["steal", "foreign-cpu", "cpu-pressure", "io-pressure", "mhz", "clock-jump"]
)
def test_what_comes_from_outside_is_replayed(rule: str) -> None:
    assert may_be_replayed(spoiled("a", 0, rule))
    assert not may_be_replayed(spoiled("a", 0, rule, verdict="VALID"))


@pytest.mark.parametrize(
    "rule",
    ["send-lag", "wrong-values", "own-counts", "pauses", "throttled", "swap-in",
     "retransmits", "nothing-done"],
)  # fmt: skip
def test_what_the_trial_itself_may_have_caused_is_not(rule: str) -> None:
    assert not may_be_replayed(spoiled("a", 0, rule))


@pytest.mark.parametrize("verdict", ["OVERLOAD", "NON_STATIONARY"])
def test_results_are_never_replayed(verdict: Verdict) -> None:
    assert not may_be_replayed(spoiled("a", 0, "steal", verdict=verdict))


def test_a_rule_that_looked_at_the_measured_times_replays_nothing() -> None:
    withheld = Withheld(kind="", percent=99, rule="steal", ns=2, moved_ns=1, limit_ns=0)
    made = msgspec.structs.replace(spoiled("a", 0, "steal"), withheld=[withheld])
    assert not may_be_replayed(made)


def test_a_failure_is_replayed_only_if_nothing_was_played() -> None:
    assert may_be_replayed(failed("a", 0, "no server", ready=False))
    assert not may_be_replayed(failed("a", 0, "no answer for 15 s", ready=True))


Spoil = dict[tuple[str, int], int]


def played(made: Plan, spoil: Spoil, already: list[Outcome], most: int = 1000) -> list[Outcome]:
    """The trials of a run: `spoil` says how many first tries of a cell are spoiled."""
    outcomes = list(already)
    for block in range(made.experiment.blocks):
        todo = [t for t in made.trials if t.block == block]
        todo = [t for t in todo if t.index not in {o.trial.index for o in outcomes}]
        while todo := todo or next_replays(made, block, outcomes):
            for trial in todo:
                if len(outcomes) >= most:
                    return outcomes
                key = trial.cell.client, block
                tries = [o for o in outcomes if (o.trial.cell.client, o.trial.block) == key]
                bad = len(tries) < spoil.get(key, 0)
                one = spoiled(*key, "steal") if bad else measured(*key, 1000)
                outcomes.append(msgspec.structs.replace(one, trial=trial))
            todo = []
    return outcomes


def test_each_cell_gets_its_valid_trials_in_a_whole_run() -> None:
    made = plan()
    outcomes = played(made, {("a", 0): 1, ("b", 1): 2}, [])
    valid = [o.trial.cell.client for o in outcomes if o.verdict == "VALID"]
    assert (valid.count("a"), valid.count("b"), len(outcomes)) == (3, 3, 9)
    assert sorted(o.trial.index for o in outcomes) == list(range(9))
    check_run(header(made.experiment), outcomes)
    report = build(header(made.experiment), outcomes)
    counts = {row.name: (row.summary.valid, row.summary.trials) for row in report.groups[0].rows}
    assert counts == {"a": (3, 4), "b": (3, 5)}
    assert any(note.startswith("Replayed: 3 of 9 trials") for note in report.notes)


def test_a_cell_tries_at_most_twice_what_it_needs() -> None:
    made = plan()
    outcomes = played(made, {("a", block): 100 for block in range(3)}, [])
    assert len([o for o in outcomes if o.trial.cell.client == "a"]) == 6
    check_run(header(made.experiment), outcomes)
    notes = build(header(made.experiment), outcomes).notes
    assert "a · embedded · mixed · one: 6 trials, and 0 of 3 are valid." in notes


def test_a_resumed_run_replays_what_an_unbroken_one_does() -> None:
    made = plan()
    spoil = {("a", 0): 2, ("b", 0): 1, ("b", 2): 1}
    whole = played(made, spoil, [])
    for kept in range(len(whole) + 1):
        found = played(made, spoil, played(made, spoil, [], kept))
        assert {o.trial.index for o in found} == {o.trial.index for o in whole}
        tries = [(o.trial.block, o.trial.cell, o.verdict) for o in found]
        assert sorted(map(str, tries)) == sorted(
            str((o.trial.block, o.trial.cell, o.verdict)) for o in whole
        )


def test_without_the_setting_nothing_is_replayed() -> None:
    made = make_plan(experiment(["a", "b"], 3))
    assert len(played(made, {("a", 0): 1}, [])) == 6


@pytest.mark.slow("plays many trials")
def test_a_worker_failing_every_other_start_has_valid_trials(cli: Cli, tmp_path: Path) -> None:
    worker = ROOT / "tests" / "bad_workers" / "fails_every_other_start.py"
    command = f"command:{sys.executable} {worker} {tmp_path / 'starts'} {binary_path()}"
    # Each block has a replay, or the next one begins with a good start: never two failures.
    text = TRIALS.replace("blocks = 2", "until_valid = 3")
    ended = cli("run", write(tmp_path, text, clients=json.dumps([command])))
    assert ended.returncode == 0, ended.stderr
    assert "3 trials, 3 blocks, about" in ended.stderr
    assert "replays until each cell has 3 valid: at most 6 trials" in ended.stderr
    assert "replay, trial " in ended.stderr
    outcomes = read_outcomes(tmp_path)
    states = [outcome.state for outcome in outcomes]
    assert (states.count("measured"), "failed" in states) == (3, True)
    assert "Replayed: " in ended.stdout
    again = cli("run", "--resume")
    assert again.returncode == 0, again.stderr
    assert len(read_outcomes(tmp_path)) == len(outcomes)


def searched(step: RateStep, index: int) -> Outcome:
    client, block = step.cell.client, step.first.block
    rate = step.load.rate
    slow = rate is not None and rate > LIMITS[client]
    made = (
        closed(client, 4000, block)
        if rate is None
        else at_rate(client, rate, 2_000_000 if slow else 100_000, block)
    )
    assert made.trial.cell == step.cell
    return msgspec.structs.replace(made, trial=msgspec.structs.replace(made.trial, index=index))


def whole_run(already: list[Outcome]) -> list[Outcome]:
    experiment = search_experiment("p50<1ms", blocks=2)
    steps = RateSteps(make_plan(experiment), cpus=4)
    outcomes = list(already)
    while todo := steps.next_steps(outcomes):
        for step in todo:
            outcomes.append(searched(step, len(outcomes)))
    return outcomes


def test_each_search_begins_with_a_closed_loop_and_ends() -> None:
    outcomes = whole_run([])
    assert [o.load.rate for o in outcomes[:2]] == [None, None]
    assert [o.trial.block for o in outcomes] == sorted(o.trial.block for o in outcomes)
    assert {o.load.rate for o in outcomes if o.trial.cell.client == "a"} >= {2000, 1000, 500}


def test_all_cells_play_a_step_before_any_goes_on() -> None:
    first = [o for o in whole_run([]) if o.trial.block == 0]
    assert all(
        {first[at].trial.cell.client, first[at + 1].trial.cell.client} == {"a", "b"}
        for at in range(0, 10, 2)
    )


def test_a_resumed_run_plays_what_an_unbroken_one_does() -> None:
    whole = whole_run([])
    for kept in (1, 5, len(whole) - 1, len(whole)):
        again = whole_run(whole[:kept])
        key = {(o.trial.block, o.trial.cell) for o in whole}
        assert {(o.trial.block, o.trial.cell) for o in again} == key
        assert len(again) == len(whole)


def failed_for(client: str, block: int, reason: str) -> Outcome:
    made = measured(client, block, 100)
    return msgspec.structs.replace(made, state="failed", verdict=None, measure=None, reason=reason)


def test_ports_do_not_make_another_reason() -> None:
    reasons = [f"server 127.0.0.1:{port}: answered `stats` with ERROR" for port in (43121, 9000)]
    assert len(set(map(reason_without_ports, reasons))) == 1
    assert reason_without_ports("exited with status 7") == "exited with status 7"


def test_two_failures_for_one_reason_give_a_cell_up() -> None:
    twice = [
        failed_for("a", block, f"server 127.0.0.1:{4000 + block}: no answer") for block in (0, 1)
    ]
    other = [failed_for("b", 0, "one"), failed_for("b", 1, "two")]
    mixed = [failed_for("c", 0, "same"), measured("c", 1, 100), failed_for("c", 2, "same")]
    found = given_up([*twice, *other, *mixed])
    assert {cell.client for cell in found} == {"a"}


def test_repeated_failures_are_printed_once_and_end(inside: Inside, tmp_path: Path) -> None:
    text = f"""
name = "failing"
question = "?"
clients = [{json.dumps(bad_worker("error_at_prepare"))}, "native"]
servers = ["embedded"]
blocks = 4
design = "trials"
workloads = [{{ name = "get", mix = {{ get = 1 }}, keys = {{ count = 10 }}, records = 100 }}]
loads = [{{ name = "one" }}]
[timing]
warmup_ms = 10
measure_ms = 30
ready_ms = 20000
"""
    (tmp_path / "failing.toml").write_text(text)
    ended = inside("run", "failing.toml")
    assert ended.returncode == 1
    states = [(o.trial.cell.client, o.state) for o in read_outcomes(tmp_path)]
    assert states.count(("native", "measured")) == 4
    assert len([state for _, state in states if state == "failed"]) == 2
    lines = [line for line in ended.stderr.splitlines() if "failed" in line]
    assert len(lines) == 2
    assert lines[1].startswith("2 trials of 1 cell: failed: ")
    report = (next(tmp_path.glob("results/*/report.md"))).read_text()
    assert "--resume" not in report
