"""A client that is stopped within a sitting: the slice is void, and what it can have moved."""

import json
import shlex
import sys
from pathlib import Path

import msgspec
import pytest

from cachemark.analysis.giving_up import may_be_replayed
from cachemark.analysis.statistics.figures import window_rate
from cachemark.analysis.verdict.void_slices import judge_void
from cachemark.host import process
from cachemark.model.outcome import Outcome
from cachemark.model.rounds import Slices
from tests.builders.small_experiments import ROUNDS, read_outcomes, write
from tests.cli.in_process import Inside
from tests.conftest import ROOT

_WORKER = ROOT / "tests/runs/sittings/pausing_worker.py"


def client(number: int) -> str:
    """The native client, stopped before it plays that of its counted slices; 0: never."""
    own = [process.binary_path(), "worker", "network"]
    return f"command:{shlex.join([sys.executable, str(_WORKER), str(number), *own])}"


def played(inside: Inside, folder: Path, *numbers: int) -> list[Outcome]:
    text = ROUNDS.replace('twice = "native"\n', "").replace("blocks = 2", "blocks = 1")
    clients = json.dumps([client(number) for number in numbers])
    inside("run", write(folder, text, clients=clients))
    found = {outcome.trial.cell.client: outcome for outcome in read_outcomes(folder)}
    return [found[client(number)] for number in numbers]


def test_a_slice_in_which_a_client_was_stopped_is_void(inside: Inside, tmp_path: Path) -> None:
    # The first slices are empty ones, which tell what a turn costs.
    honest, paused = played(inside, tmp_path, 0, 14)
    assert honest.rounds is not None
    assert (honest.rounds.paused_slices, honest.rounds.void_slices) == (0, 0), honest.findings
    rounds = paused.rounds
    assert rounds is not None, paused.reason
    assert (rounds.paused_slices, rounds.void_slices) == (1, 1)
    assert rounds.paused_ns > 300_000_000
    assert len(rounds.slices.ops) == len(honest.rounds.slices.ops) - 1
    (found,) = [each for each in paused.findings if each.rule == "long-pause"]
    assert "slices are void: client or server was stopped or the machine paused" in found.text
    # Nothing of the pause is in the rate.
    assert max(rounds.slices.elapsed_ns) < rounds.paused_ns
    slices = rounds.slices
    rate = window_rate(paused)
    assert rate is not None
    assert rate == pytest.approx(sum(slices.ops) / sum(slices.elapsed_ns) * 1e9)
    withholds_what_it_can_have_moved(paused)


def withholds_what_it_can_have_moved(paused: Outcome) -> None:
    assert paused.measure is not None
    assert paused.rounds is not None
    # As if most operations had been in slices with pauses.
    ops = sum(each.ok for each in paused.measure.operations.values()) * 9 // 10
    many = msgspec.structs.replace(paused.rounds, void_ops=ops)
    judged = judge_void(paused.measure, many)
    # A busy machine plays too few operations for the others.
    assert 50.0 in {each.percent for each in judged.withheld}
    assert "withheld: p" in judged.findings[0].text
    few = msgspec.structs.replace(many, slices=Slices(ops=[9] * 5))
    (found,) = judge_void(paused.measure, few).findings
    assert (found.rule, found.weight) == ("long-pause", "INVALID")
    assert may_be_replayed(msgspec.structs.replace(paused, verdict="INVALID", findings=[found]))
