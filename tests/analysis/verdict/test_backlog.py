"""Open loops of workers without a timeline: virtual queues, read as a server's counters are."""

import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest

from cachemark.analysis.verdict import check_stationarity, judge, stationarity_findings
from cachemark.host.process import binary_path
from cachemark.model import histogram
from cachemark.model.experiment import Load, Workload
from cachemark.model.outcome import CommandCount, Stationarity
from cachemark.model.protocol import Done, Operation
from cachemark.model.server_stats import ServerStats
from cachemark.model.tape_header import Schedule
from tests.builders.histograms import from_values

WORKLOAD = Workload(name="w", mix={"get": 1})
RATE, SECONDS = 2000, 5
LOAD = Load(name="l", schedule="poisson", rate=RATE)
MS = 1_000_000


def arrivals(draw: np.random.Generator) -> np.ndarray:
    """When operations are due, in ns."""
    gaps = draw.exponential(1e9 / RATE, 2 * RATE * SECONDS).cumsum()
    return gaps[gaps < SECONDS * 1e9]


def queue(due: np.ndarray, service_ns: np.ndarray) -> np.ndarray:
    """When they are done by one server, one after the other: Lindley's recursion."""
    ends, free = np.empty(len(due)), 0.0
    for i, (at, takes) in enumerate(zip(due, service_ns, strict=True)):
        free = max(free, at) + takes
        ends[i] = free
    return ends


def readings(due: np.ndarray, ends: np.ndarray, draw: np.random.Generator) -> list[CommandCount]:
    """25 of them, each late by a part of a ms; the worker began 7 ms after the request."""
    at = np.arange(1, 26) * SECONDS * 1e9 / 26
    late = draw.exponential(0.2 * MS, len(at))
    return [
        CommandCount(
            at_ns=round(t),
            commands=int(np.searchsorted(ends + 7 * MS, t + delay)),
            due=int(np.searchsorted(due, t)),
        )
        for t, delay in zip(at, late, strict=True)
    ]


def window(due: np.ndarray, ends: np.ndarray) -> Done:
    """The worker's last message."""
    values = [max(1, round(value)) for value in ends - due]
    blob = histogram.encode(from_values(values))
    gets = Operation(
        attempts=len(due),
        ok=len(due),
        hits=len(due),
        keys=len(due),
        response=blob,
        service=blob,
    )
    return Done(
        phase="measure",
        elapsed_ns=round(ends[-1]),
        send_elapsed_ns=SECONDS * 10**9,
        operations={"get": gets},
    )


def found(draw: np.random.Generator, due: np.ndarray, service_ns: np.ndarray) -> Stationarity:
    """The finding about a window with these arrivals at a server with this service time."""
    ends = queue(due, service_ns)
    return check_stationarity(
        window(due, ends), WORKLOAD, LOAD, readings(due, ends, draw), commands=len(due)
    )


@pytest.mark.parametrize("busy", [0.1, 0.6])
def test_a_level_queue_is_seldom_found_to_be_none(busy: float) -> None:
    draw = np.random.default_rng(51)
    false = 0
    for _ in range(30):
        due = arrivals(draw)
        false += bool(
            stationarity_findings(found(draw, due, draw.exponential(busy * 1e9 / RATE, len(due))))
        )
    assert false <= 2


def test_a_growing_lag_is_found_though_the_rate_is_kept() -> None:
    """Each operation takes 0.8 % longer than the gap to the next: 99.2 % of the rate, 40 ms late
    at the end, which is below what counts as overload."""
    draw = np.random.default_rng(52)
    due = np.arange(RATE * SECONDS) * 1e9 / RATE
    judged = found(draw, due, np.full(len(due), 1.008e9 / RATE))
    assert judged.source == "server"
    (finding,) = stationarity_findings(judged)
    assert finding.weight == "NON_STATIONARY"
    rise_ns = judged.plateaus[-1].value - judged.plateaus[0].value
    assert finding.rule == "drift" or rise_ns > 20 * MS


def test_a_step_is_told_by_how_much_it_rose() -> None:
    draw = np.random.default_rng(53)
    due = arrivals(draw)
    # A delay of 20 ms for each operation of the second half.
    ends = due + 0.2 * MS + 20 * MS * (due > SECONDS * 0.5e9)
    judged = check_stationarity(
        window(due, ends), WORKLOAD, LOAD, readings(due, ends, draw), commands=len(due)
    )
    first, second = judged.plateaus
    assert second.value - first.value == pytest.approx(20 * MS, rel=0.1)
    assert first.to_ms == pytest.approx(2500, abs=250)
    (finding,) = stationarity_findings(judged)
    assert (finding.rule, finding.figure) == ("levels", None)
    assert "+" in finding.text


@pytest.mark.parametrize(
    ("commands", "readings_kept", "why"),
    [
        (None, 25, "the server reports no counters"),
        (2 * RATE * SECONDS, 25, "commands for"),
        (RATE * SECONDS, 10, "too few readings of the server's counters: 10, at least 15"),
        (RATE * SECONDS, 0, "the worker does not record the progress"),
    ],
)
def test_what_cannot_be_judged_says_why(commands: int | None, readings_kept: int, why: str) -> None:
    draw = np.random.default_rng(54)
    due = np.arange(RATE * SECONDS) * 1e9 / RATE
    ends = due + 0.1 * MS
    command_counts = readings(due, ends, draw)[:readings_kept]
    judged = check_stationarity(
        window(due, ends), WORKLOAD, LOAD, command_counts, commands=commands
    )
    assert why in judged.why
    assert stationarity_findings(judged) == []


def test_a_verdict_has_it_with_its_reason() -> None:
    draw = np.random.default_rng(55)
    due = arrivals(draw)
    ends = due + 0.2 * MS + 20 * MS * (due > SECONDS * 0.5e9)
    measure = msgspec.structs.replace(
        window(due, ends), send_lag=histogram.encode(from_values([1000]))
    )
    after = {"cmd_get": str(len(due)), "get_hits": str(len(due)), "get_misses": "0"}
    judgement = judge(
        measure,
        workload=WORKLOAD,
        load=LOAD,
        before=ServerStats(dict.fromkeys(after, "0")),
        after=ServerStats(after),
        command_counts=readings(due, ends, draw),
    )
    # A step is a note: the percentiles of the window hold for the window.
    assert judgement.verdict == "VALID"
    assert "the response time changed during the window" in judgement.notes[-1]


def test_what_was_due_is_what_the_tape_says(tmp_path: Path) -> None:
    """Uniform arrivals at 1,000/s, half a second of them, played again and again."""
    path = tmp_path / "tape"
    words = ["tape", "write", "--out", str(path), "--keys", "10", "--mix", "get=1"]
    words += ["--schedule", "uniform", "--rate", "1000", "--duration", "500ms"]
    subprocess.run([binary_path(), *words], check=True, capture_output=True)
    schedule = Schedule(path)
    period = [schedule.due(at) for at in (-1, 0, MS, 250 * MS, 500 * MS - 1)]
    assert period == [1, 1, 2, 251, 500]
    assert schedule.due(750 * MS) == schedule.due(250 * MS) + 500
