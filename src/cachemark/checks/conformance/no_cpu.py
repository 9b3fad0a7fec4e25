"""Keeps a worker from the CPU for a part of a slice: it is stopped, and continued at an instant."""

from __future__ import annotations

import os
import signal
import time

import msgspec

from cachemark.checks.conformance.slice_driver import slice_answer
from cachemark.checks.conformance.worker_driver import CaseFailedError, WorkerDriver
from cachemark.model.protocol import Slice, SliceDone

# Each try leaves the worker and this process more time. The last one takes about 15 s.
_TRIES = 7
_FIRST_STEP_S = 0.05


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
