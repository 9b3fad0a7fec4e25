"""Drives slices of a worker for the cases in slices.py, and compares their results.

It can keep a worker from the CPU for a part of a slice: it stops the worker, and continues it
later.
"""

import os
import signal
import time
from typing import Any, Literal

import msgspec

from cachemark.checks.conformance.proxy import ReplyProxy
from cachemark.checks.conformance.tape_values import tape_commands
from cachemark.checks.conformance.worker_driver import (
    ANSWER_S,
    CaseFailedError,
    WorkerDriver,
    expect,
    expect_equal,
)
from cachemark.model import histogram, protocol
from cachemark.model.protocol import Slice, SliceDone

# Each try leaves the worker and this process more time. The last one takes about 15 s.
_TRIES = 7
_FIRST_STEP_S = 0.05
KEYS = 20
# A busy machine may play nothing in some slices; but not in all of this many.
MAX_SLICES = 2_000
LATE_S = 0.4


def _check_sums(slices: list[protocol.SliceDone], done: protocol.Done) -> None:
    """Compare the answers to all slices with their `done`. Raises CaseFailedError."""
    kinds, lead_in = list(done.operations.values()), list((done.lead_in or {}).values())
    errors = sum(sum(kind.errors.values()) + kind.wrong_values for kind in kinds)
    expect_equal(sum(one.ops for one in slices), sum(kind.ok for kind in kinds), "ops of slices")
    expect_equal(sum(one.errors for one in slices), errors, "errors of slices")
    played = sum(kind.attempts for kind in lead_in)
    expect_equal(sum(one.lead_in_ops for one in slices), played, "lead_in_ops of slices")
    expect_equal(sum(one.elapsed_ns for one in slices), done.elapsed_ns, "elapsed_ns of slices")
    for one in slices:
        halves = f"the first half of a slice of {one.ops + one.errors} operations: {one}"
        expect(one.half_ops <= one.ops + one.errors, halves)
        expect(one.half_ns <= one.elapsed_ns, halves)
    for kind in [*kinds, *lead_in]:
        failed = sum(kind.errors.values()) + kind.wrong_values
        expect_equal(kind.ok + failed, kind.attempts, "ok and failed of a kind")
    timed = sum(kind.ok + kind.errors.get("timeout", 0) for kind in kinds) + done.unsent
    expect_equal(
        sum(histogram.decode(of.response).count for of in kinds if of.response),
        timed,
        "response times",
    )
    expect(not any(kind.response or kind.service for kind in lead_in), "the lead-in has histograms")
    expect(done.timeline is None, "slices have a timeline")
    expect(done.sections is None, "slices have sections")


def begin(
    driver: WorkerDriver,
    wire: str,
    servers: list[str],
    tape: tuple[str, ...],
    proxy: ReplyProxy | None = None,
    **fields: Any,
) -> None:
    """Prepare, prefill and begin slices. Only the commands of slices stay in the proxy."""
    driver.begin(wire, servers, tape, **fields)
    if proxy is not None:
        proxy.commands.clear()
    begin_again(driver)


def begin_again(driver: WorkerDriver) -> None:
    answer = driver.ask(protocol.BeginSlices())
    expect(isinstance(answer, protocol.Ready), f"begin_slices was answered by {answer}")


def play_slice(driver: WorkerDriver, request: protocol.Slice) -> protocol.SliceDone:
    driver.worker.send(request)
    return slice_answer(driver)


def slice_answer(driver: WorkerDriver) -> protocol.SliceDone:
    answer = driver.worker.receive(ANSWER_S)
    if not isinstance(answer, protocol.SliceDone):
        raise CaseFailedError(f"slice was answered by {answer}")
    return answer


def play_late_slice(
    driver: WorkerDriver, proxy: ReplyProxy, request: protocol.Slice, late_s: float = LATE_S
) -> protocol.SliceDone:
    """A slice whose first read reaches the server later than the end of the slice."""
    proxy.fault, proxy.late_s = "late", late_s
    return play_slice(driver, request)


def play_until_counted(
    driver: WorkerDriver, request: protocol.Slice, counted: Literal["ops", "errors"] = "ops"
) -> list[protocol.SliceDone]:
    """Slices until some have counted operations, and lead-ins. Raises CaseFailedError."""
    slices: list[protocol.SliceDone] = []
    while not all(any(getattr(one, name) for one in slices) for name in (counted, "lead_in_ops")):
        slices.append(play_slice(driver, request))
        expect(len(slices) < MAX_SLICES, f"nothing is counted: {slices[-1]}")
    return slices


def end(
    driver: WorkerDriver, slices: list[protocol.SliceDone], proxy: ReplyProxy | None = None
) -> protocol.Done:
    """Compare `done` with the answers to all slices, and with the commands that a proxy saw."""
    answer = driver.ask(protocol.EndSlices())
    if not isinstance(answer, protocol.Done):
        raise CaseFailedError(f"end_slices was answered by {answer}")
    expect_equal(answer.phase, "measure", "the phase in done")
    _check_sums(slices, answer)
    if proxy is not None:
        _check_all_sent(proxy, driver, slices, answer)
    return answer


def expect_refused(driver: WorkerDriver, request: protocol.Message) -> None:
    answer = driver.ask(request)
    kind = answer.kind if isinstance(answer, protocol.Failure) else ""
    expect_equal(kind, "protocol", f"the kind of error of {request}")


def slice_done(lead_in_ops: int = 0) -> protocol.SliceDone:
    """The answer to a slice that counted nothing."""
    return protocol.SliceDone(ops=0, errors=0, lead_in_ops=lead_in_ops, elapsed_ns=0)


def _sent(proxy: ReplyProxy, driver: WorkerDriver) -> list[tuple[str, bytes]]:
    """The commands of slices: some libraries also test a connection, with a key of their own."""
    groups = tape_commands(driver.folder / "tape")
    keys = {command.key for group in groups for command in group}
    return [(each.verb, each.key) for each in proxy.commands if each.key in keys]


def check_commands(proxy: ReplyProxy, driver: WorkerDriver) -> None:
    """The sent commands follow the tape, over and over from its start."""
    groups = tape_commands(driver.folder / "tape")
    records = [(group[0].verb, group[0].key) for group in groups[KEYS:]]
    sent = _sent(proxy, driver)
    expect(sent, "no command was sent")
    for at, command in enumerate(sent):
        expected = records[at % len(records)]
        expect(command == expected, f"command {at}: sent {command}, the tape has {expected}")


def _check_all_sent(
    proxy: ReplyProxy, driver: WorkerDriver, slices: list[protocol.SliceDone], done: protocol.Done
) -> None:
    """All commands that were sent are counted, or belong to the lead-in."""
    played = sum(one.ops + one.errors + one.lead_in_ops for one in slices)
    kinds = [*done.operations.values(), *(done.lead_in or {}).values()]
    expect_equal(sum(kind.attempts for kind in kinds), played, "attempts of done")
    expect_equal(len(_sent(proxy, driver)), played, "commands of slices")


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a slice, in steps of equal length: it is without a CPU until `until`.

    If that is before the end of the slice, the worker plays in what is left.
    """

    lead_in: float
    until: float
    length: float

    def request(self, step_s: float, start_unix_ns: int) -> Slice:
        return Slice(
            length_us=round(self.length * step_s * 1e6),
            lead_in_us=round(self.lead_in * step_s * 1e6),
            start_unix_ns=start_unix_ns,
        )


def play_without_cpu(driver: WorkerDriver, gap: Gap) -> tuple[list[SliceDone], Slice]:
    """Play a slice whose worker gets no CPU from before its start on. Raises CaseFailedError.

    Returns the answers to all tries, and the request of the last one, which succeeded.
    """
    answers: list[SliceDone] = []
    for number in range(_TRIES):
        request, answer, in_time = _try(driver, gap, _FIRST_STEP_S * 2**number)
        answers.append(answer)
        if in_time:
            return answers, request
    last_s = _FIRST_STEP_S * 2 ** (_TRIES - 1)
    raise CaseFailedError(f"it did not play as planned within slices of {gap.length * last_s} s")


def _try(driver: WorkerDriver, gap: Gap, step_s: float) -> tuple[Slice, SliceDone, bool]:
    """One try. The last value is false if the slice did not begin as planned."""
    start_s = time.time() + 2 * step_s
    request = gap.request(step_s, round(start_s * 1e9))
    driver.worker.send(request)
    _sleep_until(start_s - step_s)
    group = driver.worker.pid
    os.killpg(group, signal.SIGSTOP)
    try:
        os.waitid(os.P_PID, group, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        stopped_s = time.time()
        _sleep_until(start_s + gap.until * step_s)
        continued_s = time.time()
    finally:
        os.killpg(group, signal.SIGCONT)
    answer = slice_answer(driver)
    # A worker that read the request too late plays all of the slice after its pause.
    planned = time.time() < continued_s + request.length_us / 1e6
    # On a busy machine it may get its CPU back after the end only: such a try shows nothing.
    played = bool(answer.ops + answer.errors + answer.lead_in_ops) or gap.until >= gap.length
    return request, answer, stopped_s < start_s and planned and played


def _sleep_until(instant_s: float) -> None:
    time.sleep(max(0.0, instant_s - time.time()))
