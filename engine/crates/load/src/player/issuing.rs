//! The part of a player that decides which operation is sent when, and on which channel.

use cachemark_injected_bugs::{Bug, injected};
use cachemark_tape::Op;

use super::Player;
use super::work_slice::WorkSlice;
use crate::connection::Wire;
use crate::operation::Pending;
use crate::routing::KeyRouting;

impl<'tape, W: Wire> Player<'tape, W> {
    /// Send what can be sent: in a closed loop on each channel with room, in an open loop what is due.
    /// Call it when time has passed or replies have come.
    pub fn issue(&mut self, now_ns: u64) {
        if self.is_open_loop() {
            self.issue_due(now_ns);
        } else {
            self.issue_after_think_time(now_ns);
            self.issue_closed(now_ns);
        }
    }

    /// Whether the tape says when operations start. A prefill has no schedule.
    #[inline]
    pub(super) fn is_open_loop(&self) -> bool {
        matches!(self.work_slice, WorkSlice::Lane { .. }) && self.tape.is_open_loop()
    }

    /// Whether operations have intended starts: in an open loop, or with think times.
    pub fn is_timed(&self) -> bool {
        matches!(self.work_slice, WorkSlice::Lane { .. }) && self.tape.is_timed()
    }

    /// Whether an operation is due now that has not been sent or queued.
    #[inline]
    pub fn is_due(&self, now_ns: u64) -> bool {
        self.next_due_ns().is_some_and(|due_ns| due_ns <= now_ns)
    }

    fn issue_closed(&mut self, now_ns: u64) {
        while let Some(channel) = self.channels.next_candidate() {
            // Each operation takes a place, also while its caller thinks, so the room is known before.
            for _ in 0..self.room(channel) {
                if self.stopped || now_ns >= self.window.end_ns {
                    return;
                }
                let Some((op, think_ns)) = self.take() else { return };
                if think_ns > 0 {
                    self.think_queue.start(channel, op, now_ns + think_ns);
                    continue;
                }
                let group = self.recorder.take_group();
                self.send(channel, Pending { group, ..Pending::closed_loop(op) });
            }
        }
    }

    /// Send the operations whose think time is over. The end of the think time is the intended start.
    fn issue_after_think_time(&mut self, now_ns: u64) {
        if self.think_queue.is_empty() || self.stopped || now_ns >= self.window.end_ns {
            return;
        }
        self.send_queued();
        while let Some((channel, op, due_ns)) = self.think_queue.take_due(now_ns) {
            self.recorder.metrics.generator_lag.saturating_record((now_ns - due_ns).max(1));
            if self.has_room(channel) {
                self.send(channel, Pending::open_loop(op, due_ns));
            } else {
                // Its channel is down: the next channel with room takes it.
                self.queue.push_back((op, due_ns));
            }
        }
    }

    fn issue_due(&mut self, now_ns: u64) {
        while let Some((op, due_ns)) = self.take_due(now_ns) {
            let waits = !self.queue.is_empty() || self.next_channel_with_room().is_none();
            let metrics = self.recorder.metrics_of(due_ns);
            metrics.generator_lag.saturating_record((now_ns - due_ns).max(1));
            metrics.queued += u64::from(waits && !injected(Bug::UnflaggedLimit));
            self.queue.push_back((op, due_ns));
            self.send_queued();
        }
        self.send_queued();
    }

    pub(super) fn send_queued(&mut self) {
        while !self.queue.is_empty() {
            let Some(channel) = self.next_channel_with_room() else { return };
            let Some((op, due_ns)) = self.queue.pop_front() else { return };
            self.send(channel, Pending::open_loop(op, due_ns));
            self.next_channel = (channel + 1) % self.channels.len();
        }
    }

    // The rest is inlined by order, down to the bytes of the request: each call would copy the operation,
    // which has more than a hundred bytes, and this costs more than what is done with it.

    /// Send an operation on a channel: on one connection, or in parts on several.
    #[inline(always)]
    fn send(&mut self, channel: usize, pending: Pending) {
        self.in_flight += 1;
        self.channels.operation_began(channel);
        let most = &mut self.recorder.metrics.max_in_flight;
        *most = self.in_flight.max(*most);
        match self.routing {
            None => self.send_on_connection(channel, pending),
            Some(routing) => self.send_parts(channel, routing, pending),
        }
    }

    #[inline(always)]
    fn send_on_connection(&mut self, c: usize, pending: Pending) {
        self.mark_unsent(c);
        self.connections[c].send(pending, self.view);
    }

    /// List a connection that is about to have output, unless it is listed already.
    #[inline]
    pub(super) fn mark_unsent(&mut self, c: usize) {
        if !self.connections[c].has_output() {
            self.unsent.push_back(c);
        }
    }

    #[inline(never)]
    fn send_parts(&mut self, channel: usize, routing: &KeyRouting, pending: Pending) {
        let first = self.channels.first_connection(channel);
        let count = routing.parts(&pending.op).count();
        if count == 1 {
            let (server, _) = routing.parts(&pending.op).next().expect("the one part");
            return self.send_on_connection(first + server, pending);
        }
        let is_replica = routing.is_replicated(&pending.op);
        let split_id = self.recorder.split(pending, count as u16);
        for (index, (server, op)) in routing.parts(&pending.op).enumerate() {
            let part = pending.part(op, split_id, is_replica && index > 0);
            self.send_on_connection(first + server, part);
        }
    }

    /// The next channel with room, round robin.
    fn next_channel_with_room(&self) -> Option<usize> {
        let count = self.channels.len();
        (0..count)
            .map(|step| (self.next_channel + step) % count)
            .find(|channel| self.has_room(*channel))
    }

    #[inline]
    fn has_room(&self, channel: usize) -> bool {
        self.room(channel) > 0
    }

    #[inline]
    fn room(&self, channel: usize) -> usize {
        self.channels.room(channel, self.think_queue.waiting_on(channel))
    }

    /// The next operation if it is due, and when it was due.
    fn take_due(&mut self, now_ns: u64) -> Option<(Op, u64)> {
        let due_ns = self.next_due_ns().filter(|due_ns| *due_ns <= now_ns)?;
        self.take().map(|(op, _)| (op, due_ns))
    }

    /// When the next operation is due, in an open loop or with think times; `None` if there is none
    /// left.
    pub fn next_due_ns(&self) -> Option<u64> {
        if let Some(due_ns) = self.think_queue.next_due_ns() {
            return (!self.stopped && due_ns < self.window.end_ns).then_some(due_ns);
        }
        let WorkSlice::Lane { lane: Some(lane), ops } = &self.work_slice else {
            return None;
        };
        if *ops == 0 || self.stopped || !self.tape.is_open_loop() {
            return None;
        }
        let (j, pass) = lane.peek();
        let due_ns = self.tape_origin_ns + pass * self.tape.period_ns() + self.tape.due_ns(j);
        (due_ns < self.window.end_ns).then_some(due_ns)
    }

    /// The next operation of the work slice, and its think time.
    #[inline(always)]
    fn take(&mut self) -> Option<(Op, u64)> {
        let (op, record) = self.work_slice.take(self.tape)?;
        let Some(record) = record else { return Some((op, 0)) };
        let op = self.routing.map_or(op, |routing| routing.grouped_by_server(op, record));
        Some((op, self.tape.think_ns(record)))
    }

    pub(super) fn exhausted(&self) -> bool {
        self.work_slice.exhausted(self.tape)
    }
}
