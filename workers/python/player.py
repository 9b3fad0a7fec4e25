"""Plays a share of the tape with a client: opens it, runs phases, returns their results."""

from __future__ import annotations

import gc
import importlib
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, count, islice, repeat

import call_log
import give_up
import groups
import heap
import lane_threads
from histogram import encode
from main_thread import MAIN_THREAD
from operation import Operations
from recorder import Recorder, summed
from renewal import RenewedSession, renewed
from timeline import Timeline, summarise
from window import Window, clock, wait_until

# The time that lanes need to be ready before a window begins.
_START_AHEAD_NS = 5_000_000


class Player:
    """A client with its connections open, and the lanes of this worker."""

    def __init__(self, client, setup, tape):
        self.client, self.setup, self.tape = client, setup, tape
        self.records = []
        self.playing = self.waits = False
        self._depth = setup.depth
        self.tasks = self.loop = None
        if client.API == "async":
            # Not at the top: importing asyncio takes as long as most libraries do.
            self.tasks = importlib.import_module("lane_tasks")
            self.loop = self.tasks.asyncio.new_event_loop()
        names = [key.decode() for key in tape.keys] if client.KEYS is str else tape.keys
        self.operations = Operations(tape, names)
        # A session stays in one thread from its connect on: some libraries keep a connection for
        # each thread that calls them.
        first = MAIN_THREAD if MAIN_THREAD.is_free() else ThreadPoolExecutor(1)
        self.threads = [first, *(ThreadPoolExecutor(1) for _ in range(setup.threads - 1))]
        self.sessions = self._in_threads(self._open, [()] * setup.threads)
        share, shares = setup.segment
        self.places = [share * setup.threads + t for t in range(setup.threads)]
        self.lanes = shares * setup.threads
        self.scripts = self._scripts()

    def begin(self, function, arguments):
        """Begin a call of a function in each lane's thread, all at the same time; its futures."""
        return [thread.submit(function, *own) for thread, own in zip(self.threads, arguments)]

    def _in_threads(self, function, arguments):
        """Call a function in each lane's thread, all at the same time; the results."""
        return [future.result() for future in self.begin(function, arguments)]

    def _open(self):
        if self.setup.reconnect_after:
            after, servers = self.setup.reconnect_after, len(self.setup.servers)
            return RenewedSession(lambda: self.client.Session(self.setup), after, servers)
        if self.loop is None:
            return self.client.Session(self.setup)
        # Up to Python 3.9 a queue takes the loop when it is created.
        self.tasks.asyncio.set_event_loop(self.loop)
        session = self.client.Session(self.setup)
        self.loop.run_until_complete(session.open())
        return session

    def _scripts(self):
        """A script for each lane, made without collections: nothing is garbage yet."""
        collects = hasattr(gc, "freeze")  # PyPy's collector does more than find cycles
        if collects:
            gc.disable()
        try:
            return [self._script(*pair) for pair in zip(self.sessions, self.places)]
        finally:
            if collects:
                gc.enable()

    def _script(self, session, place):
        """A function that yields a lane's calls from the first record on."""
        operations = self.operations.lane(place, self.lanes)
        if self.setup.reconnect_after:
            return lambda: session.calls(operations(), self._call)
        made = operations()
        if not isinstance(made, list):
            return lambda: (self._call(session, op) for op in operations())
        ready = [self._call(session, op) for op in made]
        return lambda: ready

    def _call(self, session, op):
        """A prepared call: function, arguments, verify, operation."""
        return (*self.client.CALLS[op.kind](session, op), op)

    @staticmethod
    def clear_away():
        """Collect all garbage before a window begins, since that takes longer than lanes need.

        The prepared objects will not be garbage; once hidden from the collector, a collection in
        the window costs as much as in a program of ordinary size. The collector stays on, as for
        users.
        """
        gc.collect()
        getattr(gc, "freeze", int)()

    def window(self, start_unix_ns, duration_ms):
        """The window of a run that starts at an instant of the wall clock."""
        ahead = max(_START_AHEAD_NS, start_unix_ns - time.time_ns())
        duration_ns = None if duration_ms is None else duration_ms * 1_000_000
        return Window(clock() + ahead, duration_ns, self.setup.timeout_ns)

    def progress(self):
        """Operations that succeeded and that failed so far."""
        failed = sum(record.failed for record in self.records)
        return max(0, sum(len(record.codes) for record in self.records) - failed), failed

    def run(self, phase, ops, window, calls_path="", gives_up=None, *, counts_heap=False):
        """Play one phase, and block until its end. The fields of `done`."""
        if phase == "prefill":
            self.tape.begin_prefill()
        with_begins = bool(calls_path) or (self.tape.grouped and phase != "prefill")
        self.records = [Recorder(Timeline(window), with_begins) for _ in self.sessions]
        renewed(self.sessions)
        limits = [part(ops, t, len(self.sessions)) for t in range(len(self.sessions))]
        calls = [self._calls(t, phase, limit, window) for t, limit in enumerate(limits)]
        open_loop = self.tape.open_loop and phase != "prefill"
        if gives_up and open_loop:
            calls = [give_up.giving_up(own, gives_up, window) for own in calls]
        quiet = phase != "prefill" and any("noreply" in kind for kind in self.tape.kinds)
        collections = heap.collections() if counts_heap else None
        before = resource.getrusage(resource.RUSAGE_SELF)
        self.playing, self.waits = True, open_loop
        # A pool may let the same few of many tasks have its connections until the others time out.
        self._depth = 1 if phase == "prefill" else self.setup.depth
        shared = (window, quiet, open_loop, [])
        each = [(*own, *shared) for own in zip(self.sessions, calls, self.records)]
        self._in_threads(self._play, each)
        self.playing = False
        after = resource.getrusage(resource.RUSAGE_SELF)
        collected = heap.since(collections)
        return {**self._done(phase, window, before, after), "heap": collected}

    def close(self):
        """Close the connections."""
        getattr(gc, "unfreeze", int)()
        self._in_threads(self._close, zip(self.sessions))
        for thread in self.threads:
            thread.shutdown(wait=False)

    def _close(self, session):
        if self.loop:
            self.loop.run_until_complete(session.close())
        else:
            session.close()

    def _calls(self, t, phase, limit, window):
        session, script, times = self.sessions[t], self.scripts[t], self.tape.times
        if phase == "prefill":
            stored = self.operations.prefill(self.places[t], self.lanes)
            return (self._call(session, op) for op in stored)
        if not self.tape.numbers(self.places[t], self.lanes):
            return iter(())
        if not times:
            return islice(chain.from_iterable(script() for _ in repeat(0)), limit)
        period_ns = self.tape.period_ns
        passes = ((window.start_ns + period_ns * turn, script()) for turn in count())
        due = ((base + times[call[3].number], *call) for base, one in passes for call in one)
        return islice(due, limit)

    def _play(self, session, calls, record, window, *rest):
        """Play one lane. An error of this worker's own code ends the window for all lanes."""
        try:
            self._play_lane(session, calls, record, window, *rest)
        except BaseException:
            window.stop()
            raise

    def _play_lane(self, session, calls, record, window, quiet, open_loop, active):  # noqa: PLR0917
        session.record = record
        session.begin(quiet)
        if self.loop:
            lane = self.tasks.open_loop_lane if open_loop else self.tasks.closed_loop_lane
            count = self.setup.connections * self._depth
            self.loop.run_until_complete(
                self.tasks.play(session, calls, window, record, count, lane)
            )
        else:
            loop = lane_threads.open_loop_lane if open_loop else lane_threads.closed_loop_lane
            wait_until(window.start_ns, window)
            loop(session, calls, window, record, active)
        session.finish()
        if quiet:
            record.end_quiet(lambda: self.barrier(session))

    def barrier(self, session):
        """Send commands with a reply on the session's connections, after operations without one."""
        answer = session.barrier()
        return self.loop.run_until_complete(answer) if self.loop else answer

    def write_calls(self, phase, path):
        """Write the call log of the last run. Raises OSError."""
        call_log.write(path, self.records, self._facts(phase))

    def _facts(self, phase):
        facts = self.operations
        return facts.prefill_facts if phase == "prefill" else facts.facts

    def _done(self, phase, window, before, after):
        records, start_ns = self.records, window.start_ns
        facts, grouped = self._facts(phase), self.tape.grouped and phase != "prefill"
        return {
            "type": "done",
            "phase": phase,
            "elapsed_ns": max(0, *(record.ended_ns - start_ns for record in records)),
            "send_elapsed_ns": max(0, *(record.sent_ns - start_ns for record in records)),
            "operations": {kind: of.message() for kind, of in summed(records, facts).items()},
            "send_lag": encode(chain.from_iterable(record.lags for record in records)),
            "max_in_flight": max(
                *(record.peak for record in records), sum(bool(r.numbers) for r in records)
            ),
            "queued": sum(record.queued for record in records),
            "unsent": sum(len(record.unsent) for record in records),
            # The libraries do not report their reconnects, and the worker itself makes none.
            "reconnects": 0,
            "renewed": renewed(self.sessions),
            "cpu_user_ns": int((after.ru_utime - before.ru_utime) * 1e9),
            "cpu_system_ns": int((after.ru_stime - before.ru_stime) * 1e9),
            "barriers": sum(record.barriers for record in records),
            **summarise(records, encode),
            "groups": groups.message(records, self.tape.group) if grouped else None,
            "wrong_replies": call_log.wrong_replies(records),
        }


def part(total, number, parts):
    """The share of a total for one of `parts` parts; None without a total."""
    return None if total is None else total // parts + (number < total % parts)
