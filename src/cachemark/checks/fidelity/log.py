"""The scripted server's log of each read, and the true times that follow from it."""

from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from cachemark.model.errors import DECODE_ERRORS, TrialError
from cachemark.model.tape_header import read_header

NsArray = NDArray[np.int64]
ANSWERED = ("answered", "wrong")


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """One entry per read, in order of arrival. Times are in ns of CLOCK_MONOTONIC.

    `beyond` is the number of reads that did not fit in the log, `accepted` that of connections.
    """

    received_ns: list[int]
    due_ns: list[int]
    first_ns: list[int]
    sent_ns: list[int]
    connection: list[int]
    fate: list[str]
    beyond: int = 0
    accepted: int = 0

    def count(self, *fates: str) -> int:
        """The number of reads with one of these fates."""
        return sum(self.fate.count(fate) for fate in fates)


def read_log(path: Path) -> Log:
    """Read the log file that the server wrote. Raises TrialError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Log)
    except (OSError, *DECODE_ERRORS) as error:
        raise TrialError(f"scripted server: no log: {error}") from error


def services_ns(log: Log) -> NsArray:
    """The time from receipt to the last byte sent, of each answered read, sorted."""
    answered = _answered(log)
    return np.sort(_array(log.sent_ns)[answered] - _array(log.received_ns)[answered])


def groups_ns(log: Log, length: int) -> NsArray:
    """The times of groups, sorted: from the receipt of the first read to the last byte sent.

    `length` reads that follow one another are a group, if all of them were answered rightly. They
    must have been sent one after the other.
    """
    whole = len(log.fate) // length
    right = (np.array(log.fate[: whole * length]) == "answered").reshape(whole, length).all(axis=1)
    first, last = (np.arange(whole)[right] * length + place for place in (0, length - 1))
    return np.sort(_array(log.sent_ns)[last] - _array(log.received_ns)[first])


def lateness_ns(log: Log) -> NsArray:
    """How much later than scripted the last byte was sent, sorted. The host causes this."""
    answered = _answered(log)
    return np.sort(_array(log.sent_ns)[answered] - _array(log.due_ns)[answered])


def stalls(log: Log, timeout_ns: int) -> int:
    """The number of answered reads after which their caller paused for a time-out or more.

    A caller sends its next read as soon as one is over: at its answer, or at the latest a time-out
    after the server got it. If more time passes until the next read arrives, the client or its host
    stood still, and the client may rightly have counted the read as timed out.
    """
    if not log.sent_ns:
        return 0
    answered = _answered(log)
    received, sent = _array(log.received_ns), _array(log.sent_ns)
    over = np.where(answered, sent, received + timeout_ns)
    began = np.minimum(np.append(received[0], over[:-1]), received)
    ended = np.maximum(np.append(received[1:], sent[-1]), sent)
    return int((answered & (ended - began >= timeout_ns)).sum())


def responses_ns(log: Log, intended_ns: NsArray) -> NsArray:
    """From the intended start of each read to its last byte, sorted.

    `intended_ns` is the tape's schedule, relative to the window's start. The server does not know
    that start. It is estimated from the read that arrived earliest relative to its schedule, so
    each time is short by the network delay of that read. There must be one connection, which
    receives in the order of the schedule, and every read must have been answered.
    """
    return np.sort(_array(log.sent_ns) - intended_ns - _earliest_ns(log, intended_ns))


def start_late_ns(log: Log, intended_ns: NsArray, asked_ns: int) -> int:
    """The estimated start of the window − the time `asked_ns` of its request, in ns.

    The real start was between the two. `asked_ns` is on the log's clock.
    """
    return max(0, _earliest_ns(log, intended_ns) - asked_ns)


def _earliest_ns(log: Log, intended_ns: NsArray) -> int:
    """The estimated start of the window, from the earliest read relative to its schedule."""
    return int(np.min(_array(log.received_ns) - intended_ns))


def intended_ns(tape: Path) -> NsArray:
    """The intended starts on a tape, in ns since the window's start."""
    header = read_header(tape)
    times = np.fromfile(tape, "<u8", header.op_count, offset=header.times_at)
    return times.astype(np.int64)


def percentile(times: NsArray, percent: float) -> int:
    """A percentile of sorted times."""
    return int(times[rank(len(times), percent) - 1])


def rank(count: int, percent: float) -> int:
    """ceil(percent/100 · count), as the histograms have it; the first is 1."""
    return max(1, int(np.ceil(percent / 100 * count * (1 - 1e-12))))


def _answered(log: Log) -> NDArray[np.bool_]:
    return np.isin(log.fate, ANSWERED)


def _array(values: list[int]) -> NsArray:
    return np.array(values, dtype=np.int64)
