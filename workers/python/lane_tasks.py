"""The measured loops, for libraries with awaited calls: one lane is one task.

All tasks share one list of operations: a free task takes the next one.
"""

from __future__ import annotations

import asyncio

from client import failure_code
from lane_threads import record_unsent
from lead_in import LeadIn
from verify import TIMEOUT
from window import SPIN_NS, clock, wait_until

# The event loop's timers count milliseconds, and are up to two late.
_COARSE_NS = 2_000_000
_LOOK_S = 0.02


class TaskLanes:
    """The tasks of a run and what they share."""

    def __init__(self, session, calls, window, record):
        self.session = session
        self.calls = iter(calls)
        self.window = window
        self.record = record
        self.since = {}  # when each task's call began
        self.turn = asyncio.Lock()
        self.waiting = 0
        self.left = None  # open loop: the first call that is not due in the window
        # Slices: for each task its lead-in, the end of its last call, and the number of its calls.
        self.callers = []

    async def call(self, function, arguments, verify, op):
        """Make, time and record one call: the instants of its begin and its end."""
        record, task, since = self.record, asyncio.current_task(), self.since
        began = since[task] = clock()
        record.peak = max(record.peak, len(since))
        answer = None
        try:
            answer = await function(*arguments)
        except asyncio.CancelledError:  # by the watch
            now = clock()
            code = TIMEOUT
        except Exception as error:
            now = clock()
            code = failure_code(self.session, error, op)
        else:
            now = clock()
            code = verify(answer, op)
        if now - began >= self.window.timeout_ns:
            code = TIMEOUT
        del since[task]
        if code < 0:
            record.fail(op, code, answer)
        if now >= record.timeline.end_ns:
            record.timeline.advance(now, len(record.codes))
        record.numbers.append(op.number)
        record.codes.append(code)
        record.times.append(now - began)
        if record.begins is not None:
            record.begins.append(began)
        record.sent_ns = record.ended_ns = now
        return began, now

    async def watch(self):
        """End calls that last too long, for libraries without a time-out of their own."""
        while True:
            await asyncio.sleep(_LOOK_S)
            now = clock()
            late = [
                task for task, began in self.since.items() if now - began > self.window.timeout_ns
            ]
            if late and not self.session.expire():
                for task in late:
                    task.cancel()


async def play(session, calls, window, record, count, lane):  # noqa: PLR0917
    """Run `count` tasks of a kind from the window's start until all have ended; the lanes."""
    lanes = TaskLanes(session, calls, window, record)
    wait_until(window.start_ns, window)
    tasks = [asyncio.ensure_future(lane(lanes)) for _ in range(count)]
    watch = asyncio.ensure_future(lanes.watch())
    try:
        await asyncio.gather(*tasks)
    finally:
        watch.cancel()
    return lanes


async def closed_loop_lane(lanes):
    """Call after call until the window ends."""
    window, call, now = lanes.window, lanes.call, clock()
    for function, arguments, verify, op in lanes.calls if now < window.end_ns else ():
        _, now = await call(function, arguments, verify, op)
        if now >= window.end_ns:
            break


async def slice_lane(lanes):
    """The same in a slice: each task has a lead-in of its own."""
    window, record = lanes.window, lanes.record
    lead_in = LeadIn(window, 0, in_process=False)
    now, ended, noted = clock(), 0, -1
    lead_in.look(now)
    calls = enumerate(lanes.calls if now < window.end_ns else ())
    for noted, (function, arguments, verify, op) in calls:
        _, now = await lanes.call(function, arguments, verify, op)
        ended = now
        if lead_in.counted_from is None:
            record.lead_in.append(len(record.codes) - 1)
        if now >= lead_in.end_ns:
            lead_in.advance(now, noted)
        if now >= window.end_ns:
            break
    lanes.callers.append((lead_in, ended, noted + 1))


async def open_loop_lane(lanes):
    """Each call when it is due, or as soon after that as a task is free.

    One task at a time has the turn: it waits for the next call to be due, passes the turn on and
    makes the call.
    """
    window, record = lanes.window, lanes.record
    while True:
        busy = not lanes.waiting  # all others are in a call
        lanes.waiting += 1
        async with lanes.turn:
            call = next(lanes.calls, None)
            if call is not None:
                due = call[0]
                if busy and due < clock():
                    record.queued += 1
                sent = due < window.end_ns and await due_now(due, window)
                if not sent or clock() >= window.drain_ns:
                    lanes.left = record_unsent(lanes.calls, call, window, record)
                    lanes.calls, call = iter(()), None
            lanes.waiting -= 1
        if call is None:
            return
        began, _ = await lanes.call(*call[1:])
        record.lags.append(began - due)
        if due < window.lead_in_end_ns:
            record.lead_in.append(len(record.codes) - 1)


async def due_now(due, window):
    """Wait for an instant. False if the run was stopped before it came."""
    while True:
        left = due - clock()
        if left <= 0:
            return True
        if window.stopped:
            return False
        # A sleep of nothing lets the event loop look for replies.
        coarse = left > _COARSE_NS + SPIN_NS
        await asyncio.sleep(min((left - _COARSE_NS) / 1e9, _LOOK_S) if coarse else 0)
