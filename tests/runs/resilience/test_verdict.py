"""Figures from calls, and verdicts from figures: each rule is broken by something, and says why."""

from collections.abc import Sequence

import msgspec
import pytest

from cachemark.analysis.resilience.answers import CallAnswer
from cachemark.analysis.resilience.figures import (
    Figures,
    Phases,
    PlayedCalls,
    ProcessSample,
    Samples,
    figures,
    timeline,
)
from cachemark.analysis.resilience.verdict import RULES, VERDICTS, findings, verdict_of
from cachemark.model.call_log import Call
from cachemark.runs.resilience.play import disturbance

_MS = 1_000_000
_PHASES = Phases(start_ns=0, fault_ns=1000 * _MS, fault_end_ns=2000 * _MS, end_ns=4000 * _MS)
_IDLE = ProcessSample(cpu_ns=0, threads=4, descriptors=10, rss_bytes=1 << 20)


def played(
    answers: Sequence[tuple[int, int, CallAnswer]],
    *,
    returned: bool = True,
    connections: int = 0,
    server_misses: int = 0,
    can_be_served: bool = False,
    at_fault: ProcessSample = _IDLE,
    at_end: ProcessSample | None = None,
) -> PlayedCalls:
    """Calls as (begin, end, answer) in ms, in the order of their ends."""
    at_end = at_end or at_fault
    calls = [
        Call(
            begin_ns=begin * _MS,
            end_ns=end * _MS,
            record=0,
            key=0,
            is_write=False,
            length=0,
            caller=0,
            outcome="miss" if answer == "false miss" else "ok",
        )
        for begin, end, answer in answers
    ]
    return PlayedCalls(
        calls=calls,
        answers=[answer for _, _, answer in answers],
        phases=_PHASES,
        samples=Samples(begin=_IDLE, before=at_fault, fault_end=at_end, after=at_end),
        returned=returned,
        unsent=0,
        connections=connections,
        server_misses=server_misses,
        can_be_served=can_be_served,
    )


def good(begin_ms: int, end_ms: int) -> list[tuple[int, int, CallAnswer]]:
    return [(at, at + 1, "right") for at in range(begin_ms, end_ms, 10)]


QUIET = [*good(0, 1000), *good(2000, 4000)]


def test_the_figures_of_a_client_that_fails_fast_and_recovers() -> None:
    failing: list[tuple[int, int, CallAnswer]] = [
        (at, at + 2, "timeout") for at in range(1200, 2100, 10)
    ]
    found = figures(played([*good(0, 1000), *failing, *good(2110, 4000)]))
    assert found.first_error_ms == 202
    assert found.longest_ms == found.p99_during_ms == 2
    assert found.recovery_ms == 111
    assert found.during == {"timeout": 80}
    assert found.after == {"timeout": 10, "right": 189}
    assert verdict_of(findings(found, "common")) == "safe"


def test_a_single_failure_begins_the_count_of_right_answers_again() -> None:
    late: list[tuple[int, int, CallAnswer]] = [(2500, 2500, "connection")]
    found = figures(played([*good(0, 1000), *good(2000, 2500), *late, *good(2500, 4000)]))
    assert found.recovery_ms == 501
    assert figures(played([*good(0, 1000), *good(3100, 4000)])).recovery_ms is None


def test_a_runtime_that_still_compiles_is_not_degraded() -> None:
    busy_before, busy_later = (
        msgspec.structs.replace(_IDLE, cpu_ns=_IDLE.cpu_ns + ms * _MS) for ms in (800, 1600)
    )
    found = figures(played(QUIET, at_fault=busy_before, at_end=busy_later))
    assert (found.cpus, found.cpus_more) == (pytest.approx(0.8), pytest.approx(0.0))
    assert not findings(found, "common")


def test_the_cpu_time_of_a_short_fault_is_not_judged() -> None:
    busy = msgspec.structs.replace(_IDLE, cpu_ns=90 * _MS)
    short = msgspec.structs.replace(_PHASES, fault_end_ns=1100 * _MS)
    found = figures(msgspec.structs.replace(played(QUIET, at_end=busy), phases=short))
    assert found.cpus == pytest.approx(0.9)
    assert found.cpus_more is None


BROKEN: dict[str, PlayedCalls] = {
    "wrong value": played([*QUIET, (4000, 4001, "wrong")]),
    "stale value": played([*QUIET, (4000, 4001, "stale")]),
    "untrusted server": msgspec.structs.replace(played(QUIET), untrusted_calls=1),
    "lost call": played(QUIET, returned=False),
    "longest call": played([*QUIET, (1000, 6001, "right")]),
    "no recovery": played(good(0, 1000)),
    "time-out": played([*QUIET, (3000, 4001, "timeout")]),
    "slow recovery": played([*good(0, 1000), *good(4010, 5100)]),
    "errors as misses": played([*QUIET, (4000, 4001, "false miss")]),
    "needless failures": played(
        [*QUIET, *((1500, 1501, "connection") for _ in range(9)), (1600, 1601, "right")],
        can_be_served=True,
    ),
    "reconnects": played(QUIET, connections=460),
    "CPU": played(QUIET, at_end=msgspec.structs.replace(_IDLE, cpu_ns=501 * _MS)),
    "descriptors": played(QUIET, at_end=msgspec.structs.replace(_IDLE, descriptors=61)),
    "threads": played(QUIET, at_end=msgspec.structs.replace(_IDLE, threads=13)),
}


def test_every_rule_has_an_example() -> None:
    assert set(BROKEN) == {rule.name for rule in RULES}
    assert verdict_of(findings(figures(played(QUIET)), "common")) == "safe"


@pytest.mark.parametrize("name", BROKEN)
def test_each_rule_is_broken_and_says_why(name: str) -> None:
    (rule,) = (rule for rule in RULES if rule.name == name)
    broken = [one for one in findings(figures(BROKEN[name]), "common") if one.rule == name]
    (found,) = broken
    assert found.verdict == rule.verdict
    assert found.why
    assert "{" not in found.why


def test_only_a_profile_that_sets_time_outs_judges_them() -> None:
    found = findings(figures(BROKEN["time-out"]), "defaults")
    assert not [one for one in found if one.rule == "time-out"]


def test_a_miss_without_a_servers_answer_is_a_disguised_error() -> None:
    """The server lost its data, so each miss may be right; but it was asked for one only."""
    call = played([(2000, 2001, "right")]).calls[0]
    misses = msgspec.structs.replace(
        played(QUIET, server_misses=1),
        calls=[call._replace(outcome="miss")] * 3,
        answers=["right"] * 3,
    )
    assert figures(misses).misses == 3
    assert figures(misses).false_misses == 2


def test_rules_name_figures_and_verdicts_that_exist() -> None:
    fields = set(Figures.__struct_fields__)
    for rule in RULES:
        assert rule.figure in fields
        assert rule.verdict in VERDICTS


def test_the_worst_finding_is_the_verdict() -> None:
    found = figures(played([*good(0, 1000), (1000, 6001, "wrong")]))
    assert verdict_of(findings(found, "common")) == "unsafe"


def test_a_timeline_has_every_call_once() -> None:
    calls = played([*QUIET, (4000, 9000, "timeout")])
    slices = timeline(calls.calls, calls.answers, _PHASES)
    assert len(slices) == 40
    assert sum(sum(counts.values()) for counts in slices) == len(calls.calls)
    assert slices[-1]["timeout"] == 1, "a call that ends after the window is in the last slice"


def test_a_verdict_that_can_come_from_the_machine_is_doubted() -> None:
    def doubt(name: str, **machine: int) -> str:
        found = figures(msgspec.structs.replace(BROKEN[name], **machine))
        return disturbance(found, findings(found, "common"))

    assert "paused for 300 ms" in doubt("slow recovery", longest_pause_ns=300 * _MS)
    assert "3.0 threads" in doubt("no recovery", waited_ns=9000 * _MS)
    for name in ("wrong value", "stale value", "descriptors", "reconnects"):
        assert not doubt(name, longest_pause_ns=300 * _MS), "it does not come from the machine"
    assert not doubt("no recovery")


def test_a_lost_call_says_how_the_run_ended() -> None:
    died = figures(msgspec.structs.replace(BROKEN["lost call"], end="a lane died"))
    assert [one.why for one in findings(died, "common")] == ["a lane died"]
    gone = figures(msgspec.structs.replace(BROKEN["no recovery"], returned=False))
    assert [one.rule for one in findings(gone, "common")] == ["lost call"], "nobody plays on"


def test_a_client_not_back_says_how_long_it_was_watched() -> None:
    (found,) = (one for one in findings(figures(BROKEN["no recovery"]), "common"))
    assert found.why.startswith("not back within 2 s")
