"""Failures that repeat are one reason, whatever their ports are, and end a cell."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from cachemark.analysis.giving_up import given_up, reason_without_ports
from cachemark.model.outcome import Outcome
from tests.builders.outcomes import measured
from tests.builders.small_experiments import read_outcomes
from tests.cli.in_process import Inside
from tests.conftest import bad_worker


def failed(client: str, block: int, reason: str) -> Outcome:
    made = measured(client, block, 100)
    return msgspec.structs.replace(made, state="failed", verdict=None, measure=None, reason=reason)


def test_ports_do_not_make_another_reason() -> None:
    reasons = [f"server 127.0.0.1:{port}: answered `stats` with ERROR" for port in (43121, 9000)]
    assert len(set(map(reason_without_ports, reasons))) == 1
    assert reason_without_ports("exited with status 7") == "exited with status 7"


def test_a_cell_is_given_up_after_two_failures_for_one_reason() -> None:
    twice = [failed("a", block, f"server 127.0.0.1:{4000 + block}: no answer") for block in (0, 1)]
    other = [failed("b", 0, "one"), failed("b", 1, "two")]
    mixed = [failed("c", 0, "same"), measured("c", 1, 100), failed("c", 2, "same")]
    found = given_up([*twice, *other, *mixed])
    assert {cell.client for cell in found} == {"a"}


def test_what_fails_again_and_again_is_told_once_and_not_tried_for_ever(
    inside: Inside, tmp_path: Path
) -> None:
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
