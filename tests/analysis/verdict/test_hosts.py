"""Trials over several hosts: what their clocks, their starts and their noise make of a trial."""

import msgspec
import pytest

from cachemark.analysis.verdict.hosts import clock_findings, differing_hosts, skew_finding
from cachemark.model import histogram
from cachemark.model.merging import worst_noise
from cachemark.model.outcome import HostNoise, HostPart
from cachemark.model.protocol import Done
from cachemark.model.protocol_results import Operation
from cachemark.runs.trials.judging import start_skew_ns
from tests.builders.histograms import from_values

MS = 1_000_000


def part(name: str, error_ns: int = 0, late_ns: int | None = 0, moved_ns: int = 0) -> HostPart:
    """A made-up host of a trial."""
    return HostPart(
        name=name,
        roles=["client"],
        address="10.0.0.1",
        clock_offset_ns=0,
        clock_error_ns=error_ns,
        clock_moved_ns=moved_ns,
        round_trip_ns=0,
        late_ns=late_ns,
    )


def test_the_skew_is_of_the_two_worst_hosts_that_play() -> None:
    hosts = [part("a", 10, 5), part("b", 20), part("c", 3), part("server", 99, None)]
    assert start_skew_ns(hosts) == 15 + 20
    assert start_skew_ns(hosts[:1]) == 0, "one host starts with itself"


@pytest.mark.parametrize(
    ("skew_ns", "weights"), [(MS, []), (2 * MS, ["note"]), (11 * MS, ["INVALID"])]
)
def test_a_skew_of_more_than_a_percent_of_the_window(skew_ns: int, weights: list[str]) -> None:
    assert [found.weight for found in skew_finding(skew_ns, 1000 * MS)] == weights


@pytest.mark.parametrize(
    ("moved_ns", "jumped"), [(2 * MS, False), (-6 * MS, False), (7 * MS, True), (-7 * MS, True)]
)
def test_a_clock_may_be_slewed_but_not_jump(moved_ns: int, jumped: bool) -> None:
    """In 10 s slewing moves a clock by 5 ms; 1 ms more is for the comparison."""
    (found, *_) = [*clock_findings([part("a", moved_ns=moved_ns)], 10_000 * MS, {"a": 0}), None]
    assert (found is not None) == jumped
    if found:
        assert found.weight == "INVALID"
        assert "the clock of a moved" in found.text


def test_the_noise_of_a_trial_is_its_worst_hosts() -> None:
    found = worst_noise(
        [
            HostNoise(steal_percent=1.0, counters={"retransmits": 1, "segments_sent": 9}, cpus=2),
            HostNoise(foreign_cpu_percent=7.0, clock_step_ns=-5, paused_ns=3, window_ns=4),
            HostNoise(steal_percent=0.5, counters={"retransmits": 0, "segments_sent": 5}, cpus=8),
        ]
    )
    assert (found.steal_percent, found.foreign_cpu_percent, found.cpus) == (1.0, 7.0, 8)
    assert found.counters == {"retransmits": 1, "segments_sent": 9}
    assert (found.clock_step_ns, found.paused_ns) == (-5, 3)


def test_retransmissions_of_one_host_do_not_count_for_another() -> None:
    """A server's host with a few in a million, and a measuring client that sends little."""
    counters = [
        {"retransmits": 7, "segments_sent": 1_000_000, "accept_drops": 1},
        {"retransmits": 0, "segments_sent": 2_000, "accept_drops": 2},
        {"accept_drops": 3},
    ]
    found = worst_noise([HostNoise(counters=of) for of in counters])
    assert found.counters == {**counters[0], "accept_drops": 3}
    assert worst_noise([HostNoise(counters=of) for of in counters[2:]]).counters == counters[2]


def played(name: str, ok: int, response_us: int) -> HostPart:
    """A host that did `ok` operations in a second, each in the same time."""
    blob = histogram.encode(from_values([response_us * 1000] * 100))
    done = Done(
        phase="measure",
        elapsed_ns=1000 * MS,
        send_elapsed_ns=1000 * MS,
        operations={"get": Operation(attempts=ok, ok=ok, response=blob)},
    )
    return msgspec.structs.replace(part(name), measure=done)


def test_a_host_that_differs_from_the_others_is_named() -> None:
    alike = [played("a", 1000, 50), played("b", 1100, 55), played("c", 950, 45)]
    assert differing_hosts([*alike, part("server")]) == []
    (slow,) = differing_hosts([*alike, played("d", 500, 50)])
    assert slow.text == "d: 500 ops/s, the other hosts 1,000"
    assert slow.weight == "note"
    (late,) = differing_hosts([*alike, played("d", 1000, 90)])
    assert late.text == "d: 90 µs median response time, the other hosts 50"


def test_of_two_unlike_hosts_each_is_compared_with_the_other() -> None:
    found = differing_hosts([played("a", 1000, 50), played("b", 500, 50)])
    assert [one.text.partition(":")[0] for one in found] == ["a", "b"]
    assert differing_hosts([played("a", 1000, 50)]) == []
