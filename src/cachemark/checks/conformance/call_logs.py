"""Cases for the call log: it has each call, and its figures add up to the figures of `done`."""

import base64
import time
from collections import Counter

from cachemark.checks.conformance.cases import claiming, each
from cachemark.checks.conformance.proxy import proxied
from cachemark.checks.conformance.tape_values import tape_values
from cachemark.checks.conformance.worker_driver import WorkerDriver, expect, expect_equal
from cachemark.endpoints.servers import RunningServer
from cachemark.model.call_log import Call, TapeData, read_calls
from cachemark.model.protocol import Done, Operation, RunRequest

_OPS = 200
_TAPE = (
    "--keys", "50", "--size", "20..90", "--mix", "get=3,set=1", "--prefill", "0.5",
    "--schedule", "uniform", "--rate", "1000", "--duration", f"{_OPS}ms",
)  # fmt: skip


def a_call_log_has_each_call(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """Counts, times and value bytes of the records equal `done`."""
    done, calls, (begin_ns, end_ns) = _played(driver, wire, server.addresses[0])
    reads = _operation([call for call in calls if not call.is_write])
    writes = _operation([call for call in calls if call.is_write])
    for kind, mine in (("get", reads), ("set", writes)):
        theirs = done.operations[kind]
        for name in ("attempts", "ok", "hits", "misses", "value_bytes"):
            what = f"{name} of {kind} in the call log, against `done`"
            if kind == "get" or name not in ("hits", "misses"):
                expect_equal(getattr(mine, name), getattr(theirs, name), what)
        # A clock may have parts of a ns.
        near = abs(mine.busy_ns - theirs.busy_ns) <= mine.attempts
        expect(near, f"busy_ns of {kind}: {mine.busy_ns}, against {theirs.busy_ns} in `done`")
    for call in calls:
        inside = begin_ns <= call.begin_ns <= call.end_ns <= end_ns
        expect(inside, f"a call from {call.begin_ns} to {call.end_ns}, outside of its run")


def a_wrong_value_is_in_done(driver: WorkerDriver, wire: str, server: RunningServer) -> None:
    """The first wrong values of a run with a call log are sent; without one, none are."""
    with proxied(server.addresses[0]) as proxy:
        driver.begin(wire, [proxy.address], _TAPE)
        proxy.values = values = tape_values(driver.folder / "tape")
        proxy.fault = "corrupt"
        path = driver.folder / "calls"
        done = driver.play(RunRequest(phase="measure", ops=_OPS, calls=str(path)))
        without = driver.play(RunRequest(phase="measure", ops=_OPS))
    tape = TapeData(driver.folder / "tape")
    calls = read_calls(path, tape)
    wrong = Counter(call.outcome for call in calls if not call.is_write)["wrong"]
    expect_equal(wrong, done.operations["get"].wrong_values, "wrong values in the call log")
    expect(0 < len(done.wrong_replies) <= 16, f"{len(done.wrong_replies)} wrong replies")
    for reply in done.wrong_replies:
        value = base64.b64decode(reply.value)
        _, key, _ = tape.record(reply.record)
        expect(value[:-1] == tape.value(key, len(value))[:-1], f"the reply {value!r}")
        expect(value not in values, "a wrong reply that is right")
    expect_equal(without.wrong_replies, [], "wrong replies without a call log")


CASES = each(
    a_call_log_has_each_call, a_wrong_value_is_in_done, rule=claiming("calls", "open_loop")
)


def _played(
    driver: WorkerDriver, wire: str, address: str
) -> tuple[Done, list[Call], tuple[int, int]]:
    """The answer `done`, the call log, and the instants of the request and of the end."""
    driver.begin(wire, [address], _TAPE)
    path = driver.folder / "calls"
    path.unlink(missing_ok=True)
    asked_ns = time.monotonic_ns()
    done = driver.play(RunRequest(phase="measure", ops=_OPS, calls=str(path)))
    return done, read_calls(path, TapeData(driver.folder / "tape")), (asked_ns, time.monotonic_ns())


def _operation(calls: list[Call]) -> Operation:
    """The operation that `done` must report for calls of one kind."""
    ok = [call for call in calls if call.outcome in ("ok", "miss")]
    misses = sum(call.outcome == "miss" for call in calls)
    return Operation(
        attempts=len(calls),
        ok=len(ok),
        hits=len(ok) - misses,
        misses=misses,
        value_bytes=sum(call.length for call in calls if call.outcome == "ok"),
        busy_ns=sum(call.end_ns - call.begin_ns for call in ok),
    )
