"""A worker that lies about its own clock or CPU time: in trials, in rounds, and on a host."""

from collections.abc import Callable

import msgspec
import pytest

from cachemark.analysis.verdict import own_time_findings
from cachemark.model.outcome import Cell, CommandCount, Generators, HostPart, Observed, Outcome
from cachemark.model.protocol import Done
from cachemark.model.protocol_results import Operation
from tests.builders import rounds
from tests.builders.outcomes import measured

CELLS = [Cell(client=name, server="embedded", workload="get", load="one") for name in "ab"]
SEEN = Observed(wall_ns=6_000_000_000, duration_ns=1_000_000_000, cpu_ns=450_000_000)
Lie = Callable[[Done], Done]


def third_of_the_time(done: Done) -> Done:
    return msgspec.structs.replace(done, elapsed_ns=done.elapsed_ns // 3)


def tenth_of_the_cpu(done: Done) -> Done:
    return msgspec.structs.replace(
        done, cpu_user_ns=done.cpu_user_ns // 10, cpu_system_ns=done.cpu_system_ns // 10
    )


def honest(done: Done) -> Done:
    return done


LIES = [(honest, []), (third_of_the_time, ["own-clock"]), (tenth_of_the_cpu, ["own-cpu"])]


def scaled(done: Done) -> Done:
    """A third of every time: only the server's counters show more."""
    return third_of_the_time(
        msgspec.structs.replace(
            done, cpu_user_ns=done.cpu_user_ns // 3, cpu_system_ns=done.cpu_system_ns // 3
        )
    )


def window(outcome: Outcome) -> Done:
    assert outcome.measure is not None
    return outcome.measure


def trial(lie: Lie) -> Outcome:
    """One second of window, half of it on a CPU; 5 s more to sum up, until its answer was here."""
    base = measured("a", 0, 1000)
    return msgspec.structs.replace(base, measure=lie(window(base)), observed=SEEN)


def trial_by_operations(lie: Lie) -> Outcome:
    """The same; its progress messages came until shortly before the end."""
    seen = msgspec.structs.replace(SEEN, lasted_ns=850_000_000, duration_ns=None)
    return msgspec.structs.replace(trial(lie), observed=seen)


def host(lie: Lie) -> Outcome:
    """The second of two hosts lies: their merged window is as long as that of the first."""
    base = measured("a", 0, 1000)
    facts = {"address": "", "clock_error_ns": 0, "clock_moved_ns": 0, "round_trip_ns": 0}
    parts = [
        HostPart(
            name=name,
            roles=["client"],
            clock_offset_ns=0,
            measure=done,
            observed=SEEN,
            **facts,  # pyright: ignore[reportArgumentType]
        )
        for name, done in (("first", window(base)), ("second", lie(window(base))))
    ]
    return msgspec.structs.replace(base, hosts=parts)


def generators(lie: Lie) -> Outcome:
    base = measured("a", 0, 1000)
    made = Generators(client="b", measure=lie(window(base)), observed=SEEN)
    return msgspec.structs.replace(base, generators=made)


def sitting(lie: Lie) -> Outcome:
    """Slices of 33 ms of which 30 ms count; the lie is in each slice and in their sum."""
    slices = rounds.sitting(2, 20, lambda *_: 10_000)[0]
    slices = msgspec.structs.replace(slices, wall_ns=[34_000_000] * len(slices.ops))
    base = rounds.outcome(CELLS[0], 0, CELLS, slices)
    assert base.rounds is not None
    told = lie(window(base))
    short = window(base).elapsed_ns // told.elapsed_ns
    slices = msgspec.structs.replace(slices, elapsed_ns=[ns // short for ns in slices.elapsed_ns])
    made = msgspec.structs.replace(base.rounds, length_us=33_000, slices=slices)
    return msgspec.structs.replace(base, measure=told, rounds=made)


@pytest.mark.parametrize("play", [trial, trial_by_operations, host, generators, sitting])
@pytest.mark.parametrize(("lie", "rules"), LIES)
def test_a_lie_makes_it_invalid(play: Callable[[Lie], Outcome], lie: Lie, rules: list[str]) -> None:
    if play is sitting and lie is tenth_of_the_cpu:
        rules = []  # reports have the scheduler's account, not the worker's
    findings = own_time_findings(play(lie))
    assert sorted({found.rule for found in findings}) == rules
    assert {found.weight for found in findings} <= {"INVALID"}
    assert len({found.text for found in findings}) == len(findings)
    if play is host:
        assert all("second" in found.text for found in findings)


TICKS = [
    CommandCount(at_ns=at_ms * 10**6, took_ns=10**6, commands=commands)
    for at_ms, commands in [(50, 7), (150, 20), (550, 500), (951, 1006), (5000, 1007)]
]


def counted(lie: Lie) -> Outcome:
    """The server's counters rose for 0.8 s of a window that ends by a number of operations."""
    seen = Observed(
        wall_ns=6_000_000_000, cpu_readings=[(n * 10**8, n * 45 * 10**6) for n in range(60)]
    )
    stats = {"stats_before": {"cmd_get": "7"}, "stats_after": {"cmd_get": "1007"}}
    return msgspec.structs.replace(trial(lie), observed=seen, **stats)


@pytest.mark.parametrize(
    ("lie", "rules"),
    [
        (honest, set[str]()),
        (scaled, {"own-clock", "own-cpu"}),
        (tenth_of_the_cpu, {"own-cpu"}),
    ],
)
def test_the_counters_of_the_server_show_a_window(lie: Lie, rules: set[str]) -> None:
    assert {found.rule for found in own_time_findings(counted(lie), TICKS)} == rules


def test_a_server_may_still_do_what_its_client_gave_up() -> None:
    failed = with_timeouts(counted(third_of_the_time))
    assert own_time_findings(failed, TICKS) == []


def with_timeouts(of: Outcome) -> Outcome:
    """The same with one operation of each kind that got no reply in time."""
    operations = {
        kind: msgspec.structs.replace(each, ok=each.ok - 1, errors={"timeout": 1})
        for kind, each in window(of).operations.items()
    }
    failed = msgspec.structs.replace(window(of), operations=operations)
    return msgspec.structs.replace(of, measure=failed)


def test_only_the_sum_of_slices_may_not_lie_either() -> None:
    base = sitting(honest)
    told = third_of_the_time(window(base))
    findings = own_time_findings(msgspec.structs.replace(base, measure=told))
    assert [found.rule for found in findings] == ["own-clock"]


def test_a_window_cannot_be_longer_than_the_time_that_passed() -> None:
    base = trial(honest)
    longer = msgspec.structs.replace(window(base), elapsed_ns=6_200_000_000)
    (found,) = own_time_findings(msgspec.structs.replace(base, measure=longer))
    assert found.rule == "own-clock"
    assert "6.2 s" in found.text
    assert "6 s passed" in found.text


def test_what_was_not_seen_is_not_judged() -> None:
    base = trial(third_of_the_time)
    assert own_time_findings(msgspec.structs.replace(base, observed=None)) == []


def test_the_last_reply_of_rare_operations_may_come_early() -> None:
    base = measured("a", 0, 8)
    early = msgspec.structs.replace(window(base), elapsed_ns=400_000_000)
    assert own_time_findings(msgspec.structs.replace(base, measure=early, observed=SEEN)) == []


def test_a_failed_operation_lacks_a_reply_for_the_timeout() -> None:
    assert own_time_findings(with_timeouts(trial(third_of_the_time))) == []


@pytest.mark.parametrize(("ops", "rules"), [(3, []), (30, ["own-clock"])])
def test_slow_operations_may_take_up_most_of_a_slice(ops: int, rules: list[str]) -> None:
    """Its first completion comes late in each slice, and nothing counts before."""
    base = sitting(third_of_the_time)
    assert base.rounds is not None
    (kind,) = window(base).operations
    attempts = ops * len(base.rounds.slices.ops)
    # A worker that scales its own times gains nothing by it.
    rare = Operation(attempts=attempts, ok=attempts, busy_ns=attempts * 10_000_000)
    measure = msgspec.structs.replace(window(base), operations={kind: rare})
    findings = own_time_findings(msgspec.structs.replace(base, measure=measure))
    assert [found.rule for found in findings] == rules
