"""Stationary, warming up, drifting, changing: windows made by hand."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from cachemark.analysis.verdict import check_stationarity, stationarity_findings
from cachemark.model.experiment import Load, Workload
from cachemark.model.outcome import CommandCount
from cachemark.model.protocol import Done, Timeline

WORKLOAD = Workload(name="w", mix={"get": 1})
CLOSED = Load(name="l")
OPEN = Load(name="l", schedule="uniform", rate=1000)
MS = 1_000_000


def window(rates: list[float], *, slice_ms: int = 100, each_ns: int = 50_000) -> Done:
    """A window with these numbers of operations in its slices."""
    ok = [round(rate) for rate in rates]
    timeline = Timeline(
        slice_ns=slice_ms * MS, ok=ok, response_ns=[count * each_ns for count in ok]
    )
    length = len(rates) * slice_ms * MS
    return Done(
        phase="measure", elapsed_ns=length, send_elapsed_ns=length, operations={}, timeline=timeline
    )


def rules(
    measure: Done, load: Load = CLOSED, command_counts: list[CommandCount] | None = None
) -> list[str]:
    """Which rules found something."""
    return [
        found.rule
        for found in stationarity_findings(
            check_stationarity(measure, WORKLOAD, load, command_counts or [])
        )
    ]


def noisy(level: Sequence[float], seed: int = 1) -> list[float]:
    """A level with noise of 4 %."""
    draw = np.random.default_rng(seed)
    return (np.asarray(level) * np.exp(draw.normal(0, 0.04, len(level)))).tolist()


def test_a_level_window() -> None:
    found = check_stationarity(window(noisy([1000] * 100)), WORKLOAD, CLOSED)
    assert (found.of, found.source, found.why) == ("rate", "worker", "")
    (level,) = found.plateaus
    assert (level.from_ms, level.to_ms) == (0, 10_000)
    assert level.value == pytest.approx(10_000, rel=0.02)
    assert stationarity_findings(found) == []


def test_a_slow_beginning_is_a_warm_up_with_its_length() -> None:
    measure = window(noisy([400] * 30 + [1000] * 70))
    found = check_stationarity(measure, WORKLOAD, CLOSED)
    assert found.warmup_end_ms == pytest.approx(3000, abs=100)
    (finding,) = stationarity_findings(found)
    assert finding.rule == "warm-up"
    assert finding.figure == found.warmup_end_ms
    assert "a warm-up of 3 s" in finding.text


def test_what_gets_slower_was_not_warming_up() -> None:
    assert rules(window(noisy([1000] * 30 + [500] * 70))) == ["levels"]
    assert rules(window(noisy([1000] * 70 + [1500] * 30))) == ["levels"]


def test_a_drift_without_a_step() -> None:
    assert rules(window(noisy(np.linspace(1000, 1130, 100).tolist(), 5))) == ["drift"]


def test_what_is_less_than_a_tenth_is_a_machine() -> None:
    assert rules(window(noisy([1000] * 50 + [1050] * 50))) == []


def test_pauses_are_no_levels() -> None:
    """The tail of the response times tells them."""
    rates = noisy([1000] * 100)
    for at in (7, 8, 40, 77):
        rates[at] = 0
    assert rules(window(rates)) == []


def test_a_pause_at_a_short_windows_end_is_no_trend() -> None:
    """A tenth of a second, which is a tenth of this window."""
    rates = noisy([1000] * 45) + [30] * 5
    assert rules(window(rates, slice_ms=20)) == []


def test_a_part_in_which_nothing_ended_is_a_level_too() -> None:
    assert rules(window(noisy([1000] * 70) + [0.0] * 30)) == ["levels"]
    assert rules(window([0.0] * 30 + noisy([1000] * 70))) == ["warm-up"]
    assert rules(window([0.0] * 99 + [1000])) == []


def test_an_open_loop_is_judged_by_its_response_times() -> None:
    even = window([100] * 100)
    assert even.timeline is not None
    slower = [100 * 50_000] * 50 + [100 * 150_000] * 50
    timeline = msgspec.structs.replace(even.timeline, response_ns=slower)
    measure = msgspec.structs.replace(even, timeline=timeline)
    assert rules(measure, OPEN) == ["levels"]
    assert rules(measure, CLOSED) == []


def test_the_servers_counters_judge_a_closed_loop_without_a_course() -> None:
    measure = msgspec.structs.replace(window([1000] * 30), timeline=None)
    done = np.cumsum([0] + [100] * 15 + [200] * 15)
    command_counts = [
        CommandCount(at_ns=i * 100 * MS, commands=int(count)) for i, count in enumerate(done)
    ]
    found = check_stationarity(measure, WORKLOAD, CLOSED, command_counts)
    assert found.source == "server"
    assert [level.value for level in found.plateaus] == [1000, 2000]
    assert rules(measure, CLOSED, command_counts) == ["warm-up"]


@pytest.mark.parametrize(
    ("measure", "workload", "load", "why"),
    [
        (window([9] * 5), WORKLOAD, CLOSED, "shorter than a second"),
        (window([9] * 100), Workload(name="w", mix={"get": 1}, ops=9), CLOSED, "number of"),
        (window([0.1] * 100), WORKLOAD, CLOSED, "too few"),
        (
            msgspec.structs.replace(window([9] * 100), timeline=None),
            WORKLOAD,
            OPEN,
            "does not record the progress",
        ),
    ],
)
def test_what_cannot_be_judged_says_why(
    measure: Done, workload: Workload, load: Load, why: str
) -> None:
    found = check_stationarity(measure, workload, load)
    assert why in found.why
    assert stationarity_findings(found) == []


def test_server_readings_after_the_window_do_not_count() -> None:
    """A worker may take long to reckon up, and its server has nothing to do then."""
    measure = msgspec.structs.replace(window([1000] * 20), timeline=None)
    command_counts = [
        CommandCount(at_ns=i * 100 * MS, commands=100 * min(i, 20)) for i in range(31)
    ]
    found = check_stationarity(measure, WORKLOAD, CLOSED, command_counts)
    assert found.slices == 20
    assert [level.value for level in found.plateaus] == [1000]
    assert rules(measure, CLOSED, command_counts) == []


def test_levels_that_readings_tell_begin_with_the_first_reading() -> None:
    measure = msgspec.structs.replace(window([1000] * 30), timeline=None)
    done = np.cumsum([0] + [100] * 10 + [200] * 15)
    command_counts = [
        CommandCount(at_ns=(i + 5) * 100 * MS, commands=int(n)) for i, n in enumerate(done)
    ]
    found = check_stationarity(measure, WORKLOAD, CLOSED, command_counts)
    assert [(level.from_ms, level.to_ms) for level in found.plateaus] == [(500, 1500), (1500, 3000)]
    assert found.warmup_end_ms == 1500


def test_slices_longer_than_the_window_are_too_few() -> None:
    measure = msgspec.structs.replace(
        window([900], slice_ms=1000), elapsed_ns=950 * MS, send_elapsed_ns=950 * MS
    )
    assert "too few slices: 0" in check_stationarity(measure, WORKLOAD, CLOSED).why
