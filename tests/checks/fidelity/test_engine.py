"""From the native client's recorder to the verdict: what the engine's fidelity cases yield, judged.

The engine plays its cases in virtual time and holds itself against the analytic answers. Here its
trials travel as a worker's do, and the orchestrator's decoder, percentiles, merging and verdict
must come to the same answers.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cachemark.analysis.statistics.censored_times import CensoredTimes
from cachemark.analysis.statistics.figures import response_ns
from cachemark.analysis.verdict import TrialVerdict, judge
from cachemark.model import histogram
from cachemark.model.experiment import Load, Workload
from cachemark.model.merging import merge
from cachemark.model.protocol import Done, Operation
from cachemark.model.server_stats import ServerStats
from tests.builders.histograms import from_values

ENGINE = Path(sys.executable).parent / "cachemark-engine"
# The engine's own tests hold the whole table; these are judged again.
CASES = ["F1", "F2", "F5", "F6", "F8", "F12", "F15", "F16", "F17", "F20", "F24", "F28", "F29"]
WORKLOAD = Workload(name="w", mix={"get": 1})
LAG = histogram.encode(from_values([1] * 50_000))
COUNTERS = ("cmd_get", "get_hits", "get_misses")


@dataclass(frozen=True)
class Case:
    """One case as the engine printed it."""

    name: str
    holds: bool
    checks: list[dict[str, Any]]
    verdict: str
    load: Load
    server_gets: int
    measure: Done

    def answer(self, quantity: str) -> tuple[float, float]:
        """The analytic answer and its tolerance."""
        (check,) = [check for check in self.checks if check["quantity"] == quantity]
        return check["expected"], check["tolerance"]


def read(line: str) -> Case:
    """A case, its trial decoded as a worker's answer is."""
    told = json.loads(line)
    measure = msgspec.convert(told["measure"], Done)
    attempts = sum(operation.attempts for operation in measure.operations.values())
    rate = attempts / told["window_ns"] * 1e9
    schedule = "uniform" if told["open_loop"] else "closed"
    return Case(
        name=told["case"],
        holds=told["holds"],
        checks=told["checks"],
        verdict=told["verdict"],
        load=Load(name="l", schedule=schedule, rate=rate if told["open_loop"] else None),
        server_gets=told["server_gets"],
        measure=measure,
    )


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    """The cases, by name."""
    printed = subprocess.run(
        [ENGINE, "fidelity", "--json", *CASES], capture_output=True, text=True, check=True
    )
    return {case.name: case for case in map(read, printed.stdout.splitlines())}


def judged(case: Case, measure: Done | None = None) -> TrialVerdict:
    """The verdict, with a server that counted what it was asked for."""
    gets = case.measure.operations["get"]
    # The scripted server has every key: what it was asked for and did not miss is a hit.
    rises = {"cmd_get": case.server_gets, "get_hits": case.server_gets, "get_misses": 0}
    after = ServerStats({name: str(rises[name]) for name in COUNTERS})
    assert gets.misses == 0
    return judge(
        measure or case.measure,
        workload=WORKLOAD,
        load=case.load,
        before=ServerStats(dict.fromkeys(COUNTERS, "0")),
        after=after,
    )


def test_every_case_holds(cases: dict[str, Case]) -> None:
    assert [case.name for case in cases.values() if not case.holds] == []


def test_an_installed_engine_cannot_inject_bugs() -> None:
    """The switch of the engine's own tests is not compiled in: such a build refuses this verb."""
    subprocess.run([ENGINE, "fidelity", "F22"], capture_output=True, check=True)


def test_percentiles_survive_the_journey(cases: dict[str, Case]) -> None:
    """Each percentile of each case, decoded and found here, is its analytic answer."""
    compared = 0
    for case in cases.values():
        times = histogram.decode(case.measure.operations["get"].response or "")
        for check in case.checks:
            what, _, name = check["quantity"].partition(" p")
            if what != "response" or not name:
                continue
            expected, tolerance = check["expected"], check["tolerance"]
            assert times.percentile(float(name)) == pytest.approx(expected, abs=tolerance), case
            compared += 1
    assert compared > 30


def test_verdicts(cases: dict[str, Case]) -> None:
    """VALID, OVERLOAD and INVALID where the reference says so."""
    verdicts = {name: judged(case).verdict for name, case in cases.items()}
    assert verdicts == {name: case.verdict for name, case in cases.items()}
    assert set(verdicts.values()) == {"VALID", "OVERLOAD", "INVALID", "NON_STATIONARY"}


def test_f16_depth_a_timeout_keeps_the_waits_behind_it(cases: dict[str, Case]) -> None:
    """240 of 1,600 operations waited in a stall: the tail is a lower bound, not the time of p50."""
    gets = cases["F16 depth"].measure.operations["get"]
    assert histogram.decode(gets.response or "").count == gets.attempts == 1600
    times = CensoredTimes([gets])
    for percent, expected in ((50, 1e6), (90, 100e6), (99, 280e6)):
        found = times.percentile(percent)
        assert found is not None
        assert found.ns == pytest.approx(expected, rel=0.1)
        assert found.exact == (percent == 50)


def test_f17_the_end_of_a_warm_up_is_found(cases: dict[str, Case]) -> None:
    """10 ms for 5 s, then 1 ms: within one slice; and what begins after it is VALID at 1 ms."""
    judgement = judged(cases["F17 counted"])
    found = judgement.stationarity
    assert found is not None
    assert found.warmup_end_ms == pytest.approx(5000, abs=found.slice_ms)
    assert found.slice_ms < 500
    assert [level.value for level in found.plateaus] == pytest.approx([10e6, 1e6], rel=0.01)
    assert [finding.rule for finding in judgement.findings] == ["warm-up"]
    after = judged(cases["F17"])
    assert after.verdict == "VALID"
    assert after.stationarity is not None
    assert len(after.stationarity.plateaus) == 1
    p90 = response_ns(list(cases["F17"].measure.operations.values()), 90)
    assert p90 == pytest.approx(1e6, rel=1 / 1024)


def test_f17b_a_change_of_regime_is_told_with_its_parts(cases: dict[str, Case]) -> None:
    judgement = judged(cases["F17b"])
    assert judgement.stationarity is not None
    slice_ms = judgement.stationarity.slice_ms
    first, second = judgement.stationarity.plateaus
    assert (first.from_ms, second.from_ms) == (0, first.to_ms)
    assert first.to_ms == pytest.approx(15_000, abs=slice_ms)
    assert second.to_ms == pytest.approx(30_000, abs=slice_ms)
    assert [first.value, second.value] == pytest.approx([1e6, 2e6], rel=0.001)
    assert judgement.stationarity.warmup_end_ms is None
    assert [finding.rule for finding in judgement.findings] == ["levels"]


def test_a_stall_is_no_regime(cases: dict[str, Case]) -> None:
    """F5 stalls each second, F6 once for 2 s: the tail has them, and the window is level."""
    for name in ("F5", "F6", "F5 Poisson"):
        found = judged(cases[name]).stationarity
        assert found is not None
        assert (found.why, len(found.plateaus)) == ("", 1), name


def test_a_depth_that_binds_is_told(cases: dict[str, Case]) -> None:
    assert any("waited for a free connection" in note for note in judged(cases["F5d"]).notes)
    assert judged(cases["F5"]).notes == []


def test_a_frozen_client_is_not_taken_for_a_slow_server(cases: dict[str, Case]) -> None:
    """The tail is withheld, also where what piled up then waited for connections.

    The client stands still in 10 % of the time. So half of the operations, and p50, are not its
    own doing.
    """
    for name in ("F20", "F20 bound"):
        judgement = judged(cases[name])
        assert {99.0, 99.9} <= {each.percent for each in judgement.withheld}
        assert 50.0 in {bound.percent for bound in judgement.lag_bounds}
        assert any("the client sent too late" in found.text for found in judgement.findings)


def test_a_closed_loop_has_no_open_answer(cases: dict[str, Case]) -> None:
    """Its p99 is the delay; a "corrected" one would be 90 ms."""
    expected, tolerance = cases["F5c"].answer("response p99")
    measured = response_ns(list(cases["F5c"].measure.operations.values()), 99)
    assert measured == pytest.approx(expected, abs=tolerance)
    assert cases["F5c"].measure.send_lag is None


def window_of(ns: int) -> Done:
    """The report of a worker that did 50,000 operations of that length."""
    blob = histogram.encode(from_values([ns] * 50_000))
    done = Operation(attempts=50_000, ok=50_000, response=blob, service=blob)
    return Done(phase="measure", elapsed_ns=10**9, send_elapsed_ns=10**9, operations={"get": done})


def test_a_fleet_merges_histograms_not_percentiles() -> None:
    """F24 over processes: averaged percentiles would say 5.5 ms."""
    merged = merge([window_of(1_000_000), window_of(10_000_000)])
    times = histogram.decode(merged.operations["get"].response or "")
    assert times.count == 100_000
    assert times.percentile(50) == pytest.approx(1_000_000, rel=1 / 1024)
    assert times.percentile(50.001) == pytest.approx(10_000_000, rel=1 / 1024)
    assert times.percentile(99) == pytest.approx(10_000_000, rel=1 / 1024)


def test_a_straggler_is_no_overload() -> None:
    """One slow reply after the schedule's end is not a backlog that grew."""
    measure = msgspec.structs.replace(window_of(1_000_000), elapsed_ns=3 * 10**9, send_lag=LAG)
    load = Load(name="l", schedule="uniform", rate=50_000)
    nothing = ServerStats()
    judgement = judge(measure, workload=WORKLOAD, load=load, before=nothing, after=nothing)
    assert judgement.verdict == "VALID"
