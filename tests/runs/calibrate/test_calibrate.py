"""Calibrations: the sweep's decisions, what is kept, what a report says of it, and one played."""

from pathlib import Path

import msgspec
import pytest

from cachemark.model import histogram
from cachemark.model.calibration import (
    Calibration,
    CalibrationStep,
    Floor,
    headroom,
    latest_calibrations,
)
from cachemark.model.errors import UsageError
from cachemark.model.experiment import Load
from cachemark.model.outcome import Finding, Outcome
from cachemark.report.calibration import sections
from cachemark.runs.calibrate.sweep import judge_step, sweep
from cachemark.runs.storage.store import append_calibration, load_calibrations
from tests.builders.histograms import from_values
from tests.builders.outcomes import experiment, measured
from tests.cli.in_process import Inside
from tests.conftest import Cli

FLOOR = Floor(ops_per_s=1000.0, p50_ns=20_000, p99_ns=50_000, p999_ns=None)


def made(client: str = "native", **fields: object) -> Calibration:
    """A calibration with one caller."""
    blank = Calibration(
        at="2026-01-02T03:04:05+00:00",
        host="made",
        cpu_model="Made CPU",
        cpus=2,
        cachemark="0.1.0",
        client=client,
        library_version="1.0",
        against="null",
        threads=1,
        connections=1,
        depth=1,
        budget_ns=100_000,
        floor=FLOOR,
        clean_rate=500.0,
    )
    return msgspec.structs.replace(blank, **fields)


def played(cleanly: float, least: float = 1) -> list[CalibrationStep]:
    """A sweep of a client that is on time up to a rate."""

    def play(asked: float) -> CalibrationStep:
        return CalibrationStep(rate=asked, lag_p999_ns=1, achieved=1.0, clean=asked <= cleanly)

    return sweep(1000.0, least, play)


def test_a_sweep_ends_at_the_first_rate_missed_twice() -> None:
    assert [judge_step.rate for judge_step in played(350)] == [50, 100, 200, 300, 400, 400]
    assert [judge_step.clean for judge_step in played(350)] == [True] * 4 + [False] * 2
    assert len(played(10)) == 2
    assert played(10**6)[-1].rate == 1000


def test_rates_with_hardly_any_operations_are_not_played() -> None:
    assert [judge_step.rate for judge_step in played(10**6, least=750)] == [800, 900, 1000]
    assert played(10**6, least=1001) == []


def test_one_miss_is_forgiven() -> None:
    missed: list[float] = []

    def play(asked: float) -> CalibrationStep:
        clean = asked != 200 or asked in missed
        missed.append(asked)
        return CalibrationStep(rate=asked, lag_p999_ns=1, achieved=1.0, clean=clean)

    assert max(judge_step.rate for judge_step in sweep(1000.0, 1, play) if judge_step.clean) == 1000


def window(lag_ns: int, *, elapsed_ns: int = 10**9, unsent: int = 0) -> Outcome:
    """An open loop of ten thousand operations in a second, all with the same lag."""
    outcome = measured("native", 0, 10_000)
    assert outcome.measure is not None
    late = histogram.encode(from_values([lag_ns] * 10_000))
    done = msgspec.structs.replace(
        outcome.measure, send_lag=late, generator_lag=late, elapsed_ns=elapsed_ns, unsent=unsent
    )
    return msgspec.structs.replace(outcome, measure=done)


def test_a_step_is_clean_if_all_was_done_on_time() -> None:
    asked = 10_000.0
    assert judge_step(asked, window(90_000), 100_000).clean
    assert judge_step(asked, window(110_000), 100_000).why == "sent late"
    assert judge_step(asked, window(90_000, elapsed_ns=2 * 10**9), 100_000).why == "fell behind"
    assert judge_step(asked, window(90_000, unsent=5000), 100_000).why == "fell behind"


def lags(count: int, late: int) -> Outcome:
    """An open loop in which `late` of `count` operations were sent 1 ms late, others 10 µs."""
    outcome = window(1)
    assert outcome.measure is not None
    values = [1_000_000] * late + [10_000] * (count - late)
    lag = histogram.encode(from_values(values))
    done = msgspec.structs.replace(outcome.measure, send_lag=lag, generator_lag=lag)
    return msgspec.structs.replace(outcome, measure=done)


def test_a_p999_is_not_judged_by_a_few_operations() -> None:
    """Of ten operations, any number may be late: no step here is clean."""
    few = [judge_step(1e4, lags(10, late), 100_000) for late in range(11)]
    assert not any(step.clean for step in few)
    enough = judge_step(1e4, lags(4000, 200), 100_000)
    assert (enough.clean, enough.judged, enough.why) == (False, True, "sent late")


@pytest.mark.parametrize(
    ("count", "late", "clean", "judged"),
    [
        (3687, 0, False, False),  # one too few: even none late could be chance
        (3688, 0, True, True),
        (10_000, 10, False, False),  # 0.1 % exactly
        (100_000, 80, True, True),
        (100_000, 130, False, True),
    ],
)
def test_a_step_is_judged_by_its_late_parts_interval(
    count: int, late: int, clean: bool, judged: bool
) -> None:
    step = judge_step(1e4, lags(count, late), 100_000)
    assert (step.clean, step.judged) == (clean, judged)


def test_an_unjudged_rate_does_not_end_a_sweep() -> None:
    def play(asked: float) -> CalibrationStep:
        judged = asked > 200
        clean = 200 < asked <= 500
        return CalibrationStep(rate=asked, lag_p999_ns=1, achieved=1.0, clean=clean, judged=judged)

    steps = sweep(1000.0, 1, play)
    assert [step.rate for step in steps if step.clean] == [300, 400, 500]
    assert steps[-1].rate == 600


def test_a_trial_that_is_wrong_is_no_step() -> None:
    wrong = Finding(rule="wrong-values", weight="INVALID", text="3 replies with a wrong value")
    outcome = msgspec.structs.replace(window(1), verdict="INVALID", findings=[wrong])
    assert judge_step(1000.0, outcome, 100_000).why == wrong.text
    late = msgspec.structs.replace(wrong, rule="send-lag")
    asked = msgspec.structs.replace(window(1), verdict="INVALID", findings=[late])
    assert judge_step(1000.0, asked, 100_000).clean


def test_they_are_appended_and_a_torn_line_is_left_out(tmp_path: Path) -> None:
    assert load_calibrations(tmp_path) == []
    append_calibration(tmp_path, made())
    path = append_calibration(tmp_path, made(clean_rate=600.0))
    with path.open("ab") as file:
        file.write(b'{"at":"20')
    assert [one.clean_rate for one in load_calibrations(tmp_path)] == [500.0, 600.0]
    path.write_bytes(b"no\n")
    with pytest.raises(UsageError, match=r"jsonl:1: not a calibration"):
        load_calibrations(tmp_path)


def test_the_last_of_each_client_and_number_of_callers_counts() -> None:
    several = [
        made(clean_rate=1.0),
        made("a"),
        made(clean_rate=2.0),
        made(threads=2),
        made(host="other", clean_rate=3.0),
    ]
    found = latest_calibrations(several, "made", ["a", "native", "b"])
    assert [(one.client, one.threads, one.clean_rate) for one in found] == [
        ("a", 1, 500.0),
        ("native", 1, 2.0),
        ("native", 2, 500.0),
    ]


def test_headroom_is_of_the_same_callers() -> None:
    load = Load(name="l", schedule="poisson", rate=700.0, processes=2)
    assert headroom(made(), load) == pytest.approx(0.7)
    assert headroom(made(threads=2), load) is None
    assert headroom(made(clean_rate=None), load) is None
    assert headroom(made(), Load(name="l")) is None


def test_a_report_shows_floors_and_warns_above_seventy_percent() -> None:
    slow = Load(name="slow", schedule="poisson", rate=300.0)
    fast = Load(name="fast", schedule="poisson", rate=400.0)
    run = msgspec.structs.replace(experiment(["native", "b"]), loads=[slow, fast])
    (section,) = sections(run, [made(), made("c")], "made")
    assert section.rows == [
        ["native", "1 × 1 × 1", "null", "1.00 k", "20.0 µs", "50.0 µs", "–", "500/s", "2026-01-02"]
    ]
    (warning,) = section.notes[1:]
    assert warning.startswith("native, fast: 400/s is 80% of the client's clean rate")
    assert sections(run, [made()], "elsewhere") == []


@pytest.mark.slow("plays a client over many loads")
def test_one_is_played_kept_and_reported(cli: Cli, tmp_path: Path) -> None:
    ended = cli("calibrate", "native", "--window-ms", "100", "--json")
    assert ended.returncode == 0, ended.stderr
    (told,) = msgspec.json.decode(ended.stdout, type=list[Calibration])
    assert [told] == load_calibrations(tmp_path / "results")
    assert told.against == "null"
    assert told.floor is not None
    assert told.floor.ops_per_s > 0
    # A starved machine does too little in such a window to be asked for a part of it.
    assert told.steps or "too slow" in told.why
    assert (told.clean_rate is None) == (not any(one.clean for one in told.steps))
    (tmp_path / "e.toml").write_text(
        'name = "e"\nquestion = "?"\nclients = ["native"]\nservers = ["embedded"]\nblocks = 1\n'
        '[[workloads]]\nname = "w"\nmix = { get = 1 }\n[[loads]]\nname = "l"\n'
        "[timing]\nwarmup_ms = 0\nmeasure_ms = 50\n"
    )
    assert "The clients' own cost" in cli("run", "e.toml", "--details").stdout


def test_bad_input(inside: Inside) -> None:
    assert inside("calibrate", "nativ").returncode == 2
    assert inside("calibrate", "native", "--connections", "0").returncode == 2
    ended = inside("calibrate", "python/local")
    assert ended.returncode == 2
