"""Cases for callers that give up calls, as far as a worker's callers can."""

from collections import Counter

from cachemark.checks.conformance.cases import (
    ConformanceCase,
    claiming,
    claiming_one_of,
    each,
    every,
)
from cachemark.checks.conformance.proxy import ReplyProxy, proxied
from cachemark.checks.conformance.requests import Command
from cachemark.checks.conformance.tape_values import tape_commands
from cachemark.checks.conformance.worker_driver import WorkerDriver, expect, expect_equal
from cachemark.endpoints.fault_proxy import fault_proxy
from cachemark.endpoints.servers import RunningServer
from cachemark.model.call_log import TapeData, read_calls
from cachemark.model.protocol import RunRequest
from cachemark.model.protocol_results import GiveUp, Way, attempts_of

# In the order of the keys, so that each call has a key of its own. A client has time to connect
# again between two calls.
_SEQUENTIAL = ("--keys", "20", "--size", "20", "--distribution", "sequential")
_SLOW = ("--mix", "get=2,set=1", "--schedule", "uniform", "--rate", "5", "--duration", "1200ms")
_FAST = ("--mix", "get=1", "--schedule", "uniform", "--rate", "1000", "--duration", "20ms")
_TAPE, _READS = (*_SEQUENTIAL, *_SLOW), (*_SEQUENTIAL, *_FAST)
# A call of a library that lets nothing else run while it waits ends by this time-out.
_TIMEOUT_MS = 2000
_OPS, _EVERY = 6, 3
_DELAY = {"kind": "delay", "delay_ms": 150}
_LONG_MS = 60_000
# The ways in which a call that is given up ends.
_ENDING: tuple[Way, ...] = ("cancel", "kill", "interrupt")
_SHORT_MS = 100


def a_call_that_is_given_up_is_a_timeout(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """A read without a reply is given up, and counts as a timeout."""
    way = _way_of(driver)
    with proxied(server.addresses[0]) as proxy:
        driver.begin(wire, [proxy.address], _READS, timeout_ms=_TIMEOUT_MS)
        proxy.fault = "hold"
        done = driver.play(
            RunRequest(phase="measure", ops=1, gives_up=_give_up(way, 1, after_ms=50))
        )
    expect_equal(done.operations["get"].errors, {"timeout": 1}, "errors of a read that is given up")


def the_so_manyth_call_is_given_up(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """All calls of the part count, even if they cannot be given up; replies come late.

    This does not judge the library's later behaviour.
    """
    way = _way_of(driver)
    path = driver.folder / "calls"
    with fault_proxy(server.addresses[0]) as proxy:
        driver.begin(wire, [proxy.address], _TAPE)
        proxy.apply(_DELAY)
        wish = _give_up(way, _EVERY)
        driver.play(RunRequest(phase="measure", ops=_OPS, calls=str(path), gives_up=wish))
    calls = read_calls(path, TapeData(driver.folder / "tape"))
    first = next((call.record for call in calls if call.outcome == "timeout"), None)
    expect_equal(first, _EVERY - 1, "record of the first call that was given up")


def a_late_call_is_not_given_up(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """Calls are due in the part, but the first one lasts longer than it."""
    way = _way_of(driver)
    with fault_proxy(server.addresses[0]) as proxy:
        driver.begin(wire, [proxy.address], _READS)
        proxy.apply(_DELAY)
        wish = _give_up(way, 1, after_ms=2 * _SHORT_MS, end_ms=_SHORT_MS)
        done = driver.play(RunRequest(phase="measure", ops=3, gives_up=wish))
    timeouts = done.operations["get"].errors.get("timeout", 0)
    expect(timeouts <= 1, f"{timeouts} calls were given up, the last ones after the part")


def a_forked_child_reads_too(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """Before each `every`-th call a child makes the same call, if it is a read."""
    doubled, reads = _doubled(driver, wire, server, _give_up("fork", _EVERY, after_ms=300), _OPS)
    calls = _calls(driver)
    expected = {call.key for call in calls[_EVERY - 1 :: _EVERY] if call.verb == "get"}
    expect_equal(reads, sum(call.verb == "get" for call in calls), "reads of the caller")
    # A child that gets no CPU until it is killed reads nothing.
    expect(doubled <= expected, f"children read {doubled}, and should have read {expected}")
    expect(bool(doubled), "no child read anything")


def a_late_call_is_not_forked(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """Calls are due in the part, but the first one lasts longer than it."""
    wish = _give_up("fork", 1, after_ms=2 * _SHORT_MS, end_ms=_SHORT_MS)
    doubled, _ = _doubled(driver, wire, server, wish, 4)
    expect(len(doubled) <= 1, f"children read {doubled}, some of them after the part")


def a_caller_goes_on_at_its_memory_limit(
    driver: WorkerDriver, wire: str, server: RunningServer
) -> None:
    """The caller makes all calls of the tape, and one read more of a key that the tape lacks."""
    with proxied(server.addresses[0]) as proxy:
        driver.begin(wire, [proxy.address], _TAPE)
        before = _reads(proxy)
        wish = _give_up("exhaust", _EVERY)
        dones = [
            driver.play(RunRequest(phase="measure", ops=_OPS, gives_up=wish)) for _ in range(2)
        ]
        read = _reads(proxy) - before
    calls = _calls(driver)
    own = {call.key for call in calls}
    more = {key: count for key, count in read.items() if key not in own}
    expect_equal(sorted(more.values()), [1], f"further reads; all were {dict(read)}")
    for done in dones:
        expect_equal(attempts_of(done.operations), _OPS, "calls of the tape")
        expect_equal(done.operations["get"].errors, {}, "errors")


_CANNOT = "its callers cannot give up a call like this"
_ENDS = every(claiming("open_loop"), claiming_one_of(*_ENDING, otherwise=_CANNOT))
CASES = (
    ConformanceCase(a_call_that_is_given_up_is_a_timeout, _ENDS),
    ConformanceCase(the_so_manyth_call_is_given_up, every(_ENDS, claiming("calls"))),
    ConformanceCase(a_late_call_is_not_given_up, _ENDS),
    *each(a_forked_child_reads_too, a_late_call_is_not_forked, rule=claiming("open_loop", "fork")),
    ConformanceCase(a_caller_goes_on_at_its_memory_limit, claiming("open_loop", "exhaust")),
)


def _calls(driver: WorkerDriver) -> list[Command]:
    """The calls of a caller that plays the tape alone."""
    return [command for (command,) in tape_commands(driver.folder / "tape")[-_OPS:]]


def _doubled(
    driver: WorkerDriver, wire: str, server: RunningServer, wish: GiveUp, ops: int
) -> tuple[set[bytes], int]:
    """The keys that a child also read, and the number of the caller's reads."""
    tape = _TAPE if wish.every > 1 else _READS
    with proxied(server.addresses[0]) as proxy:
        driver.begin(wire, [proxy.address], tape)
        before = _reads(proxy)
        done = driver.play(RunRequest(phase="measure", ops=ops, gives_up=wish))
        read = _reads(proxy) - before
    return {key for key, count in read.items() if count > 1}, done.operations["get"].attempts


def _way_of(driver: WorkerDriver) -> Way:
    return next(way for way in _ENDING if driver.can(way))


def _give_up(way: Way, every: int, *, after_ms: int = 30, end_ms: int = _LONG_MS) -> GiveUp:
    return GiveUp(way=way, every=every, after_ms=after_ms, begin_ms=0, end_ms=end_ms)


def _reads(proxy: ReplyProxy) -> Counter[bytes]:
    return Counter(command.key for command in proxy.commands if command.verb == "get")
