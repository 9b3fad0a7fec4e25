"""The workers of a fleet: they play slices at the same time, and may stall or answer nonsense."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cachemark.endpoints.fleet import Fleet, RunMonitor, StallDetector
from cachemark.endpoints.servers import parse_spec, running
from cachemark.endpoints.worker import Worker
from cachemark.host.process import binary_path
from cachemark.model.errors import TrialError
from cachemark.model.merging import merge_slices
from cachemark.model.protocol import (
    Failure,
    Prepare,
    Progress,
    RunRequest,
    Slice,
    SliceDone,
    Unsupported,
)
from tests.conftest import ROOT

LONG = "x" * 10**6
REFERENCE = [sys.executable, str(ROOT / "workers" / "reference" / "worker.py")]
ANSWER_S = 60.0


def played(ops: int, elapsed_ns: int) -> SliceDone:
    return SliceDone(ops=ops, errors=1 if ops else 0, lead_in_ops=2 * ops, elapsed_ns=elapsed_ns)


def test_merged_slices_have_summed_counts_and_mean_times() -> None:
    merged = merge_slices([played(10, 100), played(20, 300)])
    assert merged == SliceDone(ops=30, errors=2, lead_in_ops=60, elapsed_ns=200)


def test_a_worker_that_did_not_play_leaves_the_mean_alone() -> None:
    assert merge_slices([played(10, 100), played(0, 0)]).elapsed_ns == 100
    assert merge_slices([played(0, 0), played(0, 0)]).elapsed_ns == 0


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """A small tape of gets and sets."""
    path = tmp_path / "tape"
    mix = ("--keys", "20", "--size", "30", "--mix", "get=3,set=1", "--ops", "60")
    command = [binary_path(), "tape", "write", "--out", str(path), *mix]
    subprocess.run(command, check=True, capture_output=True)
    return path


@contextmanager
def prepared(workers: int, tape: Path) -> Generator[Fleet]:
    """Reference workers that are connected, with the keys stored."""
    with (
        running(parse_spec("embedded")) as server,
        Fleet(REFERENCE, workers, cpus="", name="reference") as fleet,
    ):
        fleet.hello(ANSWER_S)
        request = Prepare(servers=server.addresses, tape=str(tape), timeout_ms=10_000)
        fleet.prepare(request, ANSWER_S)
        watch = RunMonitor(progress=lambda _: None, silence_timeout_s=ANSWER_S)
        fleet.run(RunRequest(phase="prefill"), watch)
        yield fleet


@pytest.mark.parametrize("workers", [1, 2])
def test_the_slices_of_a_fleet_add_up(tape: Path, workers: int) -> None:
    with prepared(workers, tape) as fleet:
        fleet.begin_slices(ANSWER_S)
        request = Slice(length_us=20_000, lead_in_us=5_000)
        slices = [fleet.slice(request) for _ in range(5)]
        done = fleet.end_slices()
    assert done.lead_in is not None
    assert sum(kind.ok for kind in done.operations.values()) == sum(one.ops for one in slices)
    lead_in = sum(kind.attempts for kind in done.lead_in.values())
    assert lead_in == sum(one.lead_in_ops for one in slices)
    assert done.elapsed_ns == sum(one.elapsed_ns for one in slices)


def test_an_error_of_a_worker_is_a_failed_trial(tape: Path) -> None:
    with (
        prepared(1, tape) as fleet,
        pytest.raises(TrialError, match="slice: protocol: slice before begin_slices"),
    ):
        fleet.slice(Slice(length_us=1_000))


@pytest.mark.parametrize(
    ("reports", "stalled"),
    [
        ([(0, 1), (0, 2)], False),
        ([(0, 1), (0, 2), (0, 3)], True),
        ([(0, 1), (0, 1), (0, 1), (0, 1)], False),
        ([(0, 1), (5, 2), (5, 3), (5, 4)], False),
        ([(0, 1), (5, 2), (5, 3), (5, 4), (5, 5)], True),
        ([(10, 0), (20, 0), (30, 9)], False),
        ([(n, n) for n in range(1, 20)], False),
        ([(n, n) for n in range(1, 21)], True),
        ([(n, 5) for n in range(1, 100)], False),
    ],
)
def test_only_failures(reports: list[tuple[int, int]], stalled: bool) -> None:
    detector = StallDetector()
    seen = [detector.is_stalled(Progress(ops=ops, errors=errors)) for ops, errors in reports]
    assert seen[-1] is stalled


def test_a_reason_without_end_is_cut() -> None:
    with Worker([sys.executable, "-c", "input()"]) as worker:
        failed = worker.error_for_answer(Failure(kind="internal", text=LONG), "run")
        refused = worker.error_for_answer(Unsupported(reason=LONG, remedy=LONG), "hello")
    assert all(len(text) < 3000 for text in (failed.text, refused.text, refused.remedy))
