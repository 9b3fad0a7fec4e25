"""The measured loops, for libraries whose calls block: one lane is one thread.

Everything is prepared before a call, so between two readings of the clock there is only the
library's call.
"""

from __future__ import annotations

from itertools import chain

from client import failure_code
from verify import TIMEOUT
from window import clock, wait_until


def closed_loop_lane(session, calls, window, record, _active):
    """Call after call until the window ends."""
    number, code_of, time_of = record.numbers.append, record.codes.append, record.times.append
    timeline = record.timeline
    begin_of = None if record.begins is None else record.begins.append
    slice_ends_ns = timeline.end_ns
    now, answer = clock(), None
    # The loop makes each call that it takes: the next slice goes on with the call after it.
    for function, arguments, verify, op in calls if now < window.end_ns else ():
        began = clock()
        try:
            answer = function(*arguments)
        except Exception as error:
            now = clock()
            code = failure_code(session, error, op)
        else:
            now = clock()
            code = verify(answer, op)
        if now - began >= window.timeout_ns:
            code = TIMEOUT
        if code < 0:
            record.fail(op, code, answer)
        if now >= slice_ends_ns:
            slice_ends_ns = timeline.advance(now, len(record.codes))
        number(op.number)
        code_of(code)
        time_of(now - began)
        if begin_of:
            begin_of(began)
        if now >= window.end_ns:
            break
    record.sent_ns = record.ended_ns = now


def open_loop_lane(session, calls, window, record, active):
    """Each call when it is due, or as soon after that as this lane is free.

    `active` is a list with an entry for each outstanding call of all lanes: appending and popping
    are atomic. Returns the first call that is not due in the window, or None.
    """
    left = None
    number, code_of, time_of = record.numbers.append, record.codes.append, record.times.append
    lag_of, timeline = record.lags.append, record.timeline
    begin, end = active.append, active.pop
    begin_of = None if record.begins is None else record.begins.append
    now, answer = 0, None
    for due, function, arguments, verify, op in calls:
        if due >= window.end_ns or not wait_until(due, window) or clock() >= window.drain_ns:
            left = record_unsent(calls, (due, function, arguments, verify, op), window, record)
            break
        if now > due:
            record.queued += 1  # the call before took until after this one was due
        begin(1)
        began = clock()
        try:
            answer = function(*arguments)
        except Exception as error:
            now = clock()
            code = failure_code(session, error, op)
        else:
            now = clock()
            code = verify(answer, op)
        record.peak = max(record.peak, len(active))
        end()
        if now - began >= window.timeout_ns:
            code = TIMEOUT
        if code < 0:
            record.fail(op, code, answer)
        if now >= timeline.end_ns:
            timeline.advance(now, len(record.codes))
        if due < window.lead_in_end_ns:
            record.lead_in.append(len(record.codes))
        number(op.number)
        code_of(code)
        time_of(now - began)
        lag_of(began - due)
        if begin_of:
            begin_of(began)
    record.sent_ns = record.ended_ns = now or window.start_ns
    return left


def record_unsent(calls, first, window, record):
    """Note operations that were due in the window and that will not be sent: they waited until now.

    Returns the first call that is not due, or None.
    """
    now = clock()
    for call in chain([first], calls):
        due, op = call[0], call[4]
        if due >= min(window.end_ns, now):
            return call
        if due >= window.lead_in_end_ns:
            record.unsent.append((op.number, now - due))
    return None
