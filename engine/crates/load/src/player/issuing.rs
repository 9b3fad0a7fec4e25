//! What a player sends, and when: the half of it that hands out operations.

use cachemark_planted::{Bug, planted};
use cachemark_tape::Op;

use super::Player;
use super::work_slice::Share;
use crate::connection::Wire;
use crate::operation::Pending;
use crate::routing::Spread;

impl<'tape, W: Wire> Player<'tape, W> {
    /// Hand out operations: in a closed loop to each connection with room, in an open loop those
    /// that are due. Call it whenever time has passed or a reply has come.
    pub fn issue(&mut self, now_ns: u64) {
        if matches!(self.share, Share::Lane { .. }) && self.tape.is_open_loop() {
            self.issue_due(now_ns);
        } else {
            self.issue_thought(now_ns);
            self.issue_closed(now_ns);
        }
    }

    /// Whether operations are due at instants: in an open loop, or where callers think.
    pub fn is_timed(&self) -> bool {
        matches!(self.share, Share::Lane { .. })
            && (self.tape.is_open_loop() || self.tape.has_thinks())
    }

    /// Whether something that has not been handed out is due by now.
    #[inline]
    pub fn is_due(&self, now_ns: u64) -> bool {
        self.next_due_ns().is_some_and(|due_ns| due_ns <= now_ns)
    }

    fn issue_closed(&mut self, now_ns: u64) {
        while let Some(set) = self.sets.next_fresh() {
            while self.has_room(set) {
                if self.stopped || now_ns >= self.window.end_ns {
                    return;
                }
                let Some((op, think_ns)) = self.take() else { return };
                if think_ns > 0 {
                    self.thinking.begin(set, op, now_ns + think_ns);
                    continue;
                }
                self.send(set, Pending::closed(op));
            }
        }
    }

    /// Send what has been thought about. Its intended start is the end of the thinking.
    fn issue_thought(&mut self, now_ns: u64) {
        if self.thinking.is_empty() || self.stopped || now_ns >= self.window.end_ns {
            return;
        }
        self.send_queued();
        while let Some((set, op, due_ns)) = self.thinking.done(now_ns) {
            self.ledger.tally.late.saturating_record((now_ns - due_ns).max(1));
            if self.has_room(set) {
                self.send(set, Pending::open(op, due_ns));
            } else {
                // Its connection is down: the next that has room takes it.
                self.queue.push_back((op, due_ns));
            }
        }
    }

    fn issue_due(&mut self, now_ns: u64) {
        while let Some((op, due_ns)) = self.due(now_ns) {
            self.ledger.tally.late.saturating_record((now_ns - due_ns).max(1));
            let waits = !self.queue.is_empty() || self.with_room().is_none();
            self.ledger.tally.bound += u64::from(waits && !planted(Bug::UnflaggedLimit));
            self.queue.push_back((op, due_ns));
            self.send_queued();
        }
        self.send_queued();
    }

    pub(super) fn send_queued(&mut self) {
        while !self.queue.is_empty() {
            let Some(set) = self.with_room() else { return };
            let Some((op, due_ns)) = self.queue.pop_front() else { return };
            self.send(set, Pending::open(op, due_ns));
            self.next_set = (set + 1) % self.sets.len();
        }
    }

    /// Hand an operation to a set's connection, or to those of its keys' homes.
    #[inline]
    fn send(&mut self, set: usize, pending: Pending) {
        self.in_flight += 1;
        self.sets.began(set);
        let most = &mut self.ledger.tally.max_in_flight;
        *most = self.in_flight.max(*most);
        match self.spread {
            None => self.send_on(set, pending),
            Some(spread) => self.send_parts(set, spread, pending),
        }
    }

    #[inline]
    fn send_on(&mut self, c: usize, pending: Pending) {
        self.will_send(c);
        self.connections[c].send(pending, self.book);
    }

    /// A connection is about to have bytes to write: once it has, its turn comes by itself.
    #[inline]
    pub(super) fn will_send(&mut self, c: usize) {
        if !self.connections[c].has_outgoing() {
            self.unsent.push_back(c);
        }
    }

    fn send_parts(&mut self, set: usize, spread: &Spread, pending: Pending) {
        let first = self.sets.first(set);
        let count = spread.parts(&pending.op).count();
        if count == 1 {
            let (server, _) = spread.parts(&pending.op).next().expect("the one part");
            return self.send_on(first + server, pending);
        }
        let copies = spread.copies(&pending.op);
        let number = self.ledger.join(pending, count as u16);
        for (place, (server, op)) in spread.parts(&pending.op).enumerate() {
            let part = pending.part(op, number, copies && place > 0);
            self.send_on(first + server, part);
        }
    }

    /// The next set in turn that has room.
    fn with_room(&self) -> Option<usize> {
        let count = self.sets.len();
        (0..count).map(|step| (self.next_set + step) % count).find(|set| self.has_room(*set))
    }

    #[inline]
    pub(super) fn has_room(&self, set: usize) -> bool {
        self.sets.has_room(set, self.thinking.of(set))
    }

    /// The next operation if it is due by now, and the instant it was due at.
    fn due(&mut self, now_ns: u64) -> Option<(Op, u64)> {
        let due_ns = self.next_due_ns().filter(|due_ns| *due_ns <= now_ns)?;
        self.take().map(|(op, _)| (op, due_ns))
    }

    /// When the next operation is due, in an open loop or where a caller thinks; `None` when there
    /// is none left.
    pub fn next_due_ns(&self) -> Option<u64> {
        if let Some(due_ns) = self.thinking.next_ns() {
            return (!self.stopped && due_ns < self.window.end_ns).then_some(due_ns);
        }
        let Share::Lane { lane: Some(lane), ops } = &self.share else {
            return None;
        };
        if *ops == 0 || self.stopped || !self.tape.is_open_loop() {
            return None;
        }
        let (j, pass) = lane.peek();
        let due_ns = self.window.start_ns + pass * self.tape.period_ns() + self.tape.due_ns(j);
        (due_ns < self.window.end_ns).then_some(due_ns)
    }

    /// The next operation, and how long its caller thinks first.
    fn take(&mut self) -> Option<(Op, u64)> {
        let (op, record) = self.share.take(self.tape)?;
        let Some(record) = record else { return Some((op, 0)) };
        let op = self.spread.map_or(op, |spread| spread.ordered(op, record));
        Some((op, self.tape.think_ns(record)))
    }

    pub(super) fn exhausted(&self) -> bool {
        match &self.share {
            Share::Prefill { first, .. } => *first >= u64::from(self.tape.prefill_count()),
            Share::Lane { lane, ops } => lane.is_none() || *ops == 0,
        }
    }
}
