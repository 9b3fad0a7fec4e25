//! One caller's decisions: which operation goes out when, and on which connection. No I/O.

use std::collections::VecDeque;

use cachemark_planted::{Bug, planted};
use cachemark_protocol::reply::Violation;
use cachemark_tape::{Op, Tape};

use crate::book::Book;
use crate::connection::Connection;
use crate::intervals::Intervals;
use crate::ledger::Ledger;
use crate::pending::Pending;
use crate::share::{Share, Window};
use crate::spread::Spread;
use crate::tally::{Failure, Tally};
use crate::thinking::Thinking;
use crate::wire::{Text, Wire};

/// A player: a share of the tape, its connections and what it records.
pub struct Player<'tape, W = Text> {
    tape: &'tape Tape,
    book: Book<'tape>,
    share: Share,
    window: Window,
    depth: usize,
    /// Where several servers are used: which key is whose. Each connection is then a set, one to
    /// each server, side by side in `connections`; its depth is that of the set.
    spread: Option<&'tape Spread>,
    connections: Vec<Connection<W>>,
    up: Vec<bool>,
    /// Operations under way on each set.
    busy: Vec<usize>,
    /// Open loop: operations that are due and wait for a connection with room.
    queue: VecDeque<(Op, u64)>,
    /// Closed loop with time to think: operations whose callers still do.
    thinking: Thinking,
    next_set: usize,
    in_flight: u64,
    stopped: bool,
    /// The instant of the last reply, and of the last send.
    last_reply_ns: u64,
    last_send_ns: u64,
    ledger: Ledger,
}

impl<'tape, W: Wire> Player<'tape, W> {
    /// A player with fresh connections, all of them up.
    pub fn new(
        tape: &'tape Tape,
        share: Share,
        window: Window,
        connections: usize,
        depth: usize,
    ) -> Player<'tape, W> {
        Player {
            tape,
            book: Book::new(tape, None),
            share,
            window,
            depth,
            spread: None,
            connections: (0..connections).map(|_| Connection::new(depth)).collect(),
            up: vec![true; connections],
            busy: vec![0; connections],
            queue: VecDeque::with_capacity(1024),
            thinking: Thinking::new(connections, depth),
            next_set: 0,
            in_flight: 0,
            stopped: false,
            last_reply_ns: window.start_ns,
            last_send_ns: window.start_ns,
            ledger: Ledger::new(Tally::of_window(tape, &window)),
        }
    }

    /// The same over several servers: so many connections to each of them.
    pub fn over(mut self, spread: &'tape Spread) -> Player<'tape, W> {
        let count = self.connections.len() * spread.servers();
        self.connections = (0..count).map(|_| Connection::new(self.depth)).collect();
        self.up = vec![true; count];
        self.spread = Some(spread);
        self.book = Book::new(self.tape, Some(spread));
        self
    }

    /// What was recorded.
    pub fn tally(&self) -> &Tally {
        &self.ledger.tally
    }

    /// Hand over what was recorded so far; false where that cannot be done at once.
    pub fn hand_over(&mut self, intervals: &Intervals, length_ns: u64) -> bool {
        intervals.exchange(&mut self.ledger.tally, length_ns)
    }

    /// A write found the socket's buffer full.
    pub fn blocked(&mut self) {
        self.ledger.tally.blocked += 1;
    }

    pub fn timeout_ns(&self) -> u64 {
        self.window.timeout_ns
    }

    /// No operation begins after this.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// When the window's last reply came, and its last operation left, in ns from its start.
    pub fn elapsed_ns(&self) -> (u64, u64) {
        let start = self.window.start_ns;
        (self.last_reply_ns.max(self.last_send_ns) - start, self.last_send_ns - start)
    }

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

    fn issue_closed(&mut self, now_ns: u64) {
        for set in 0..self.sets() {
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

    fn send_queued(&mut self) {
        while !self.queue.is_empty() {
            let Some(set) = self.with_room() else { return };
            let Some((op, due_ns)) = self.queue.pop_front() else { return };
            self.send(set, Pending::open(op, due_ns));
            self.next_set = (set + 1) % self.sets();
        }
    }

    /// Hand an operation to a set's connection, or to those of its keys' homes.
    #[inline]
    fn send(&mut self, set: usize, pending: Pending) {
        self.in_flight += 1;
        self.busy[set] += 1;
        let most = &mut self.ledger.tally.max_in_flight;
        *most = self.in_flight.max(*most);
        match self.spread {
            None => self.connections[set].send(pending, self.book),
            Some(spread) => self.send_parts(set, spread, pending),
        }
    }

    fn send_parts(&mut self, set: usize, spread: &Spread, pending: Pending) {
        let first = set * spread.servers();
        let count = spread.parts(&pending.op).count();
        if count == 1 {
            let (server, _) = spread.parts(&pending.op).next().expect("the one part");
            return self.connections[first + server].send(pending, self.book);
        }
        let copies = spread.copies(&pending.op);
        let number = self.ledger.join(pending, count as u16);
        for (place, (server, op)) in spread.parts(&pending.op).enumerate() {
            let part = pending.part(op, number, copies && place > 0);
            self.connections[first + server].send(part, self.book);
        }
    }

    /// The next set in turn that has room.
    fn with_room(&self) -> Option<usize> {
        let count = self.sets();
        (0..count).map(|step| (self.next_set + step) % count).find(|set| self.has_room(*set))
    }

    #[inline]
    fn servers(&self) -> usize {
        self.spread.map_or(1, Spread::servers)
    }

    fn sets(&self) -> usize {
        self.connections.len() / self.servers()
    }

    /// Whether a set is up, all of it, and may have another operation under way.
    #[inline]
    fn has_room(&self, set: usize) -> bool {
        let servers = self.servers();
        self.busy[set] + self.thinking.of(set) < self.depth
            && self.up[set * servers..(set + 1) * servers].iter().all(|up| *up)
    }

    /// Whether some set could be used.
    pub fn any_up(&self) -> bool {
        self.up.chunks(self.servers()).any(|set| set.iter().all(|up| *up))
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

    fn exhausted(&self) -> bool {
        match &self.share {
            Share::Prefill { first, .. } => *first >= u64::from(self.tape.prefill_count()),
            Share::Lane { lane, ops } => lane.is_none() || *ops == 0,
        }
    }

    /// Whether the window is over: nothing more begins, nothing is outstanding.
    pub fn finished(&self, now_ns: u64) -> bool {
        self.closing(now_ns) && self.in_flight == 0 && self.queue.is_empty() && !self.owes_barrier()
    }

    /// Whether nothing more begins.
    pub fn closing(&self, now_ns: u64) -> bool {
        self.stopped
            || now_ns >= self.window.end_ns
            || (self.exhausted() && self.thinking.is_empty())
    }

    fn owes_barrier(&self) -> bool {
        let open = self.connections.iter().zip(&self.up);
        open.into_iter().any(|(connection, up)| *up && connection.owes_barrier())
    }

    /// At the end of the window, ask each connection for the reply that ends its quiet operations.
    pub fn close_quiet(&mut self, now_ns: u64) {
        if !self.closing(now_ns) {
            return;
        }
        for c in 0..self.connections.len() {
            if self.up[c] && self.connections[c].owes_barrier() {
                self.connections[c].send_barrier();
                self.in_flight += 1;
                let set = c / self.servers();
                self.busy[set] += 1;
            }
        }
    }

    /// So many operations of a connection's set are over.
    #[inline]
    fn ended(&mut self, c: usize, operations: usize) {
        self.in_flight -= operations as u64;
        let set = c / self.servers();
        self.busy[set] -= operations;
    }

    /// Bytes to write on a connection, stamped as sent now.
    #[inline]
    pub fn outgoing(&mut self, c: usize, now_ns: u64) -> &[u8] {
        let connection = &mut self.connections[c];
        connection.stamp(now_ns, &mut self.ledger);
        connection.outgoing()
    }

    #[inline]
    pub fn has_outgoing(&self, c: usize) -> bool {
        !self.connections[c].outgoing().is_empty()
    }

    /// So many bytes were written; true when that completed operations that have no reply.
    #[inline]
    pub fn wrote(&mut self, c: usize, bytes: usize, now_ns: u64) -> bool {
        let ended = self.connections[c].wrote(bytes, now_ns, self.book, &mut self.ledger);
        self.ended(c, ended);
        self.last_send_ns = now_ns;
        ended > 0
    }

    #[inline]
    pub fn incoming(&mut self, c: usize) -> &mut [u8] {
        self.connections[c].incoming()
    }

    /// So many bytes were read. After a violation the connection is down.
    #[inline]
    pub fn read(&mut self, c: usize, bytes: usize, now_ns: u64) -> Result<(), Violation> {
        let (ended, read) = self.connections[c].read(bytes, now_ns, self.book, &mut self.ledger);
        self.ended(c, ended);
        self.last_reply_ns = now_ns;
        if read.is_err() {
            self.lost(c, Failure::Protocol, now_ns);
        }
        read
    }

    /// The connection is gone; what was on it failed.
    pub fn lost(&mut self, c: usize, failure: Failure, now_ns: u64) {
        self.down(c, failure, u64::MAX, now_ns);
    }

    fn down(&mut self, c: usize, failure: Failure, before_ns: u64, now_ns: u64) {
        let connection = &mut self.connections[c];
        let ended = connection.fail(failure, before_ns, now_ns, self.book, &mut self.ledger);
        self.ended(c, ended);
        self.up[c] = false;
        self.last_reply_ns = now_ns;
    }

    /// The connection is there again.
    pub fn restored(&mut self, c: usize) {
        self.up[c] = true;
        self.ledger.tally.reconnects += 1;
    }

    pub fn is_idle(&self, c: usize) -> bool {
        self.connections[c].in_flight() == 0
    }

    pub fn is_up(&self, c: usize) -> bool {
        self.up[c]
    }

    /// When the next operation times out.
    pub fn next_timeout_ns(&self) -> Option<u64> {
        let oldest = self.connections.iter().filter_map(|each| each.oldest_sent_ns()).min();
        oldest.map(|sent_ns| sent_ns + self.window.timeout_ns)
    }

    /// Fail the connections on which an operation is over its time; call `lost` ones again
    /// with a fresh socket. Later replies on them could not be matched to operations.
    pub fn expire(&mut self, now_ns: u64, mut timed_out: impl FnMut(usize)) {
        let Some(before_ns) = now_ns.checked_sub(self.window.timeout_ns) else {
            return;
        };
        for c in 0..self.connections.len() {
            if self.connections[c].oldest_sent_ns().is_some_and(|sent| sent <= before_ns) {
                self.down(c, Failure::Timeout, before_ns, now_ns);
                timed_out(c);
            }
        }
    }

    /// Give up what was due and could not be sent: it waited at least this long.
    pub fn abandon(&mut self, now_ns: u64) {
        while let Some((op, due_ns)) = self.queue.pop_front() {
            self.ledger.tally.never_sent(op.verb, op.noreply, now_ns - due_ns);
        }
    }

    pub fn progress(&self) -> (u64, u64) {
        (self.ledger.tally.ok(), self.ledger.tally.failed())
    }
}
