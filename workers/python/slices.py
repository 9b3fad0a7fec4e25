"""Plays slices: short parts of the tape, in turn with other clients.

A run has the same measured loops. A lane's record continues from slice to slice, with the places of
the lead-ins beside it; everything is summed up after the last slice.
"""

from __future__ import annotations

import resource
import time
from itertools import chain, compress, count, repeat

import groups
import lane_threads
from histogram import encode
from lead_in import LeadIn
from recorder import Recorder, summed
from renewal import renewed
from window import FOR_EVER_NS, Window, clock, wait_until

_SWAPPED = bytes([1, 0]) + bytes(254)


class Lane:
    """The state of a lane from slice to slice."""

    def __init__(self, session, calls, has_calls, grouped):
        self.session, self._calls, self._left = session, calls, None
        self.has_calls = has_calls
        self.record = Recorder(None, grouped)
        self.record.firsts = []

    def calls(self, origin_ns):
        """The calls that follow the last slice."""
        if self._left is None:
            return self._calls
        (due, *call), self._left = self._left, None
        return chain([(due + origin_ns, *call)], self._calls)

    def put_back(self, call, origin_ns):
        """Put back a call that was taken but not made: the next slice begins with it."""
        if call is not None:
            self._left = (call[0] - origin_ns, *call[1:])


class Slices:
    """The slices of a player, from `begin_slices` to `end_slices`."""

    def __init__(self, player):
        self._player = player
        self._open_loop = player.tape.open_loop
        self._quiet = any("noreply" in kind for kind in player.tape.kinds)
        self._origin_ns = 0  # open loop: the instant of the tape's time 0, which moves in pauses
        self._tape_ns = self._elapsed_ns = self._user_s = self._system_s = 0
        self._in_process = player.client.WIRES == ("none",)
        renewed(player.sessions)
        self._lanes = [
            Lane(session, self._calls(t), self._has_calls(t), player.tape.grouped)
            for t, session in enumerate(player.sessions)
        ]

    def _has_calls(self, t):
        return bool(self._player.tape.numbers(self._player.places[t], self._player.lanes))

    def _calls(self, t):
        """A lane's calls, again and again; in an open loop each with its due instant."""
        player, times = self._player, self._player.tape.times
        script = player.scripts[t]
        if not self._has_calls(t):
            return iter(())
        if not times:
            return chain.from_iterable(script() for _ in repeat(0))
        passes = ((player.tape.period_ns * turn, script()) for turn in count())
        return (
            (self._origin_ns + base + times[call[3].number], *call)
            for base, one in passes
            for call in one
        )

    def window(self, request):
        """The window of a slice that begins now, or at an instant of the wall clock."""
        ahead_ns = max(0, request.get("start_unix_ns", 0) - time.time_ns())
        length_ns, lead_in_ns = request["length_us"] * 1000, request.get("lead_in_us", 0) * 1000
        return Window(clock() + ahead_ns, length_ns, self._player.setup.timeout_ns, lead_in_ns)

    def play(self, window, call_threads):
        """Play a slice; `call_threads` calls a function for each lane. The fields of its answer."""
        before = resource.getrusage(resource.RUSAGE_SELF)
        self._origin_ns = window.start_ns - self._tape_ns
        if window.duration_ns:
            self._tape_ns += window.duration_ns if self._open_loop else 0
            parts = call_threads(self._play, [(lane, window, []) for lane in self._lanes])
        else:
            parts = []
        after = resource.getrusage(resource.RUSAGE_SELF)
        self._user_s += after.ru_utime - before.ru_utime
        self._system_s += after.ru_stime - before.ru_stime
        return self._answer(window, parts)

    def _answer(self, window, parts):
        callers = [caller for part in parts for caller in part[3]]
        # Tasks that a pool gave no connection in the slice do nothing, and for no time of it.
        callers = [caller for caller in callers if caller[0]] or callers
        count = max(1, len(callers))
        elapsed_ns, half_ns = (sum(caller[i] for caller in callers) // count for i in range(2))
        if self._open_loop:
            elapsed_ns = window.duration_ns - window.lead_in_ns
        self._elapsed_ns += elapsed_ns
        ops, errors, lead_in_ops = (sum(part[i] for part in parts) for i in range(3))
        return {
            "type": "slice_done", "ops": ops, "errors": errors, "lead_in_ops": lead_in_ops,
            "elapsed_ns": elapsed_ns, "half_ops": sum(caller[2] for caller in callers),
            "half_ns": half_ns,
        }  # fmt: skip

    def _play(self, lane, window, active):
        """Play a lane's slice: ops, errors, operations of the lead-in, and the callers' times."""
        try:
            return self._play_lane(lane, window, active)
        except BaseException:
            window.stop()
            raise

    def _play_lane(self, lane, window, active):
        session, record = lane.session, lane.record
        first, first_lead_in = len(record.codes), len(record.lead_in)
        session.record = record
        record.firsts.append(first)
        record.timeline = LeadIn(window, first, self._in_process)
        session.begin(self._quiet)
        calls = lane.calls(self._origin_ns)
        if self._player.loop:
            callers = self._play_tasks(lane, window, calls)
        else:
            callers = self._play_thread(lane, window, calls, active)
        session.finish()
        if self._quiet and len(record.codes) > first:
            record.end_quiet(lambda: self._player.barrier(session))
        times = [
            _times(lead_in, record.ended_ns if self._quiet and ended_ns else ended_ns, noted)
            for lead_in, ended_ns, noted in callers
        ]
        return (*_counts(record, first, first_lead_in), times if lane.has_calls else [])

    def _play_tasks(self, lane, window, calls):
        """Play it; for each task of a closed loop, its entry in `TaskLanes.callers`."""
        setup = self._player.setup
        tasks = self._player.tasks
        task = tasks.open_loop_lane if self._open_loop else tasks.slice_lane
        count = setup.connections * setup.depth
        lane.record.timeline.end_ns = FOR_EVER_NS  # each task has a lead-in of its own
        playing = tasks.play(lane.session, calls, window, lane.record, count, task)
        lanes = self._player.loop.run_until_complete(playing)
        lane.put_back(lanes.left, self._origin_ns)
        return lanes.callers

    def _play_thread(self, lane, window, calls, active):
        """The same for the one caller that a thread is."""
        record, lead_in = lane.record, lane.record.timeline
        wait_until(window.start_ns, window)
        if self._open_loop:
            lead_in.end_ns = FOR_EVER_NS
            play = lane_threads.open_loop_lane
            lane.put_back(play(lane.session, calls, window, record, active), self._origin_ns)
            return []
        lead_in.look(clock())
        lane_threads.closed_loop_lane(lane.session, calls, window, record, active)
        noted = len(record.codes)
        counted_from = noted if lead_in.counted_from is None else lead_in.counted_from
        record.lead_in.extend(range(lead_in.first, counted_from))
        return [(lead_in, record.ended_ns if noted > lead_in.first else 0, noted)]

    def done(self):
        """The fields of `done`: the sum of all slices."""
        facts = self._player.operations.facts
        parts = [_split(lane.record) for lane in self._lanes]
        counted, lead_in = ([part[i] for part in parts] for i in range(2))
        records = [lane.record for lane in self._lanes]
        for record, part in zip(records, counted):
            part.unsent = record.unsent
        in_flight = max(*(r.peak for r in records), sum(bool(r.numbers) for r in records))
        return {
            "type": "done",
            "phase": "measure",
            "elapsed_ns": self._elapsed_ns,
            "send_elapsed_ns": self._elapsed_ns,
            "operations": {kind: of.message() for kind, of in summed(counted, facts).items()},
            "lead_in": {kind: of.untimed() for kind, of in summed(lead_in, facts).items()},
            "send_lag": encode(chain.from_iterable(part.lags for part in counted)),
            "max_in_flight": in_flight,
            "queued": sum(record.queued for record in records),
            "unsent": sum(len(record.unsent) for record in records),
            "reconnects": 0,
            "renewed": renewed(self._player.sessions),
            "cpu_user_ns": int(self._user_s * 1e9),
            "cpu_system_ns": int(self._system_s * 1e9),
            "barriers": sum(record.barriers for record in records),
            "groups": groups.message(records, self._player.tape.group),
        }


def _times(lead_in, ended_ns, noted):
    """The counted part of a caller, its first half, and the operations of this half."""
    half_ops, half_ns = lead_in.half(noted)
    return lead_in.elapsed_ns(ended_ns), half_ns, half_ops


def _counts(record, first, first_lead_in):
    """The numbers of operations since then: counted and right, counted and failed, not counted."""
    codes, lead_in = record.codes[first:], record.lead_in[first_lead_in:]
    failed = sum(code < 0 for code in codes) if codes and min(codes) < 0 else 0
    if failed and lead_in:
        failed -= sum(record.codes[at] < 0 for at in lead_in)
    counted = len(codes) - len(lead_in)
    return counted - failed, failed, len(lead_in)


def _split(record):
    """A lane's record in two: the counted parts, and the lead-ins."""
    counted = bytearray(b"\1") * len(record.codes)
    for at in record.lead_in:
        counted[at] = 0
    return [_part(record, chosen) for chosen in (counted, counted.translate(_SWAPPED))]


def _part(record, chosen):
    """The entries at the places that are not 0."""
    part = Recorder(None)
    for name in ("numbers", "codes", "times", "lags"):
        getattr(part, name).extend(compress(getattr(record, name), chosen))
    return part
