"""Noise: what spoils a trial, what is only told."""

from typing import Any

import msgspec
import pytest

from cachemark.analysis.verdict import TrialVerdict, judge
from cachemark.model import histogram
from cachemark.model.experiment import Load, NoisePolicy, Workload
from cachemark.model.outcome import HostNoise
from cachemark.model.protocol import Done, Operation
from cachemark.model.server_stats import ServerStats
from tests.builders.histograms import from_values

BLOB = histogram.encode(from_values([1_000_000] * 1000))
LAG = histogram.encode(from_values([10] * 1000))
GETS = Operation(attempts=1000, ok=1000, hits=1000, keys=1000, response=BLOB, service=BLOB)
WINDOW = Done(
    phase="measure",
    elapsed_ns=10**9,
    send_elapsed_ns=10**9,
    operations={"get": GETS},
    send_lag=LAG,
    generator_lag=LAG,
)
QUIET = HostNoise(steal_percent=0.1, foreign_cpu_percent=1.0, window_ns=10**9, counters={})
CLOSED = Load(name="l")
OPEN = Load(name="l", schedule="uniform")


def found(load: Load, policy: NoisePolicy = "auto", **noise: Any) -> tuple[str, list[str]]:
    """The verdict, and the rules that found something."""
    judgement = judged([1_000_000] * 1000, load, policy, **noise)
    return judgement.verdict, [finding.rule for finding in judgement.findings]


def judged(
    times_ns: list[int], load: Load, policy: NoisePolicy = "auto", **noise: Any
) -> TrialVerdict:
    """The verdict on gets of these times."""
    count = len(times_ns)
    blob = histogram.encode(from_values(times_ns))
    gets = msgspec.structs.replace(
        GETS, attempts=count, ok=count, hits=count, keys=count, response=blob, service=blob
    )
    return judge(
        msgspec.structs.replace(WINDOW, operations={"get": gets}),
        workload=Workload(name="w", mix={"get": 1}),
        load=load,
        before=ServerStats(),
        after=ServerStats(),
        noise=msgspec.structs.replace(QUIET, **noise),
        policy=policy,
    )


def test_a_quiet_machine_is_not_talked_about() -> None:
    assert found(OPEN) == ("VALID", [])
    assert found(CLOSED, "refuse") == ("VALID", [])


def test_a_large_figure_is_written_without_an_exponent() -> None:
    resent = {"segments_sent": 100_000, "retransmits": 260}
    (finding,) = judged([1_000_000] * 1000, CLOSED, counters=resent).findings
    assert "2,600 per million segments" in finding.text


SPOILS: list[tuple[dict[str, Any], str]] = [
    ({"steal_percent": 2.1}, "steal"),  # of an unknown number of CPUs
    ({"counters": {"segments_sent": 10_000, "retransmits": 1}}, "retransmits"),
    ({"counters": {"accept_drops": 1}}, "accept-drops"),
    ({"kernel_log": {"stalls": ["soft lockup"]}}, "kernel-log stalls"),
    ({"kernel_log": {"connections refused": ["SYN flooding"]}}, "kernel-log connections refused"),
]


@pytest.mark.parametrize(("noise", "rule"), SPOILS)
def test_what_reaches_percentiles_spoils_an_open_loop(noise: dict[str, Any], rule: str) -> None:
    assert found(OPEN, **noise) == ("INVALID", [rule])
    assert found(OPEN, "note", **noise) == ("VALID", [rule])
    assert found(CLOSED, "refuse", **noise) == ("INVALID", [rule])
    assert found(CLOSED, **noise)[0] == "VALID"


# All of them took at least 5 % of the time.
SHARES: list[tuple[dict[str, Any], str]] = [
    ({"steal_percent": 2.6, "cpus": 2}, "steal"),
    ({"counters": {"memory_pressure_us": 51_000}}, "memory-pressure"),
    ({"counters": {"io_pressure_us": 51_000}}, "io-pressure"),
    ({"longest_pause_ns": 60_000_000, "paused_ns": 60_000_000}, "pauses"),
]


@pytest.mark.parametrize(("noise", "rule"), SHARES)
def test_noise_of_a_known_share_withholds_what_it_may_move(
    noise: dict[str, Any], rule: str
) -> None:
    """Times of 1 ms, the slowest 2 % up to 100 ms: 5 % can have made the tail, and no more."""
    times = [1_000_000] * 3920 + [1_000_000 * (20 + n) for n in range(80)]
    judgement = judged(times, OPEN, **noise)
    assert judgement.verdict == "VALID"
    assert {(each.rule, each.percent) for each in judgement.withheld} == {
        (rule, 99.0),
        (rule, 99.9),
    }
    assert [f.weight for f in judgement.findings if f.rule == rule] == ["noise", "withheld"]
    assert judged(times, CLOSED, **noise).withheld == []
    # Times that are all the same were not made by it.
    assert found(OPEN, **noise) == ("VALID", [rule])
    assert found(OPEN, "refuse", **noise) == ("INVALID", [rule])


@pytest.mark.parametrize("name", ["throttled", "swapped_in", "too_hot"])
def test_what_bends_a_comparison_spoils_a_closed_loop_too(name: str) -> None:
    counters: dict[str, Any] = {"counters": {name: 1}}
    assert found(CLOSED, **counters)[0] == "INVALID"
    assert found(CLOSED, "note", **counters)[0] == "VALID"


@pytest.mark.parametrize("name", ["out of memory", "throttled by heat", "clock trouble"])
def test_a_kernel_message_about_one_client_spoils_closed_loops_too(name: str) -> None:
    complained: dict[str, Any] = {"kernel_log": {name: ["first", "last"]}}
    assert found(CLOSED, **complained) == ("INVALID", [f"kernel-log {name}"])
    assert found(CLOSED, "note", **complained) == ("VALID", [f"kernel-log {name}"])
    assert found(OPEN, kernel_log={}) == ("VALID", [])


def test_what_only_warns_never_spoils() -> None:
    warned: list[tuple[dict[str, Any], str]] = [
        ({"steal_percent": 1.0}, "steal"),
        ({"foreign_cpu_percent": 40.0}, "foreign-cpu"),
        ({"mhz": (1000.0, 1050.0)}, "mhz"),
        ({"counters": {"packet_drops": 3}}, "packet-drops"),
    ]
    for noise, rule in warned:
        assert found(OPEN, "refuse", **noise) == ("VALID", [rule])


def test_threads_that_wait_for_each_other_are_no_noise() -> None:
    """Only beside processes of others."""
    pressed: dict[str, Any] = {"counters": {"cpu_pressure_us": 900_000}}
    assert found(OPEN, **pressed) == ("VALID", [])
    beside = found(OPEN, foreign_cpu_percent=6.0, **pressed)
    assert (beside[0], set(beside[1])) == ("VALID", {"foreign-cpu", "cpu-pressure"})
    times = [1_000_000 * (1 + n % 9) for n in range(1000)]
    assert judged(times, OPEN, foreign_cpu_percent=6.0, **pressed).verdict == "INVALID"


def test_a_pause_that_cannot_reach_the_percentile_is_none() -> None:
    """p99.9 is 1 ms: a pause of 0.9 ms in a second is less than 0.1 % of it."""
    assert found(OPEN, longest_pause_ns=900_000, paused_ns=900_000) == ("VALID", [])


def test_f28_a_wall_clock_step_only_adds_a_note() -> None:
    for step_ns in (10**9, -(10**9)):
        assert found(OPEN, clock_step_ns=step_ns) == ("VALID", ["clock-step"])
    assert found(OPEN, clock_step_ns=400_000) == ("VALID", [])


def test_what_could_not_be_read_is_not_judged() -> None:
    nothing = {"steal_percent": None, "foreign_cpu_percent": None, "counters": {}}
    assert found(OPEN, "refuse", **nothing) == ("VALID", [])
