//! One caller's decisions: which operation goes out when, and on which connection. No I/O.

mod channels;
mod issuing;
mod think_time;
mod work_slice;

use std::collections::VecDeque;

use cachemark_protocol::reply_errors::Violation;
use cachemark_tape::{Op, Tape};

use channels::Sets;
use think_time::Thinking;
pub use work_slice::Share;

use crate::connection::{Batch, Connection, READ_BYTES, Text, Wire};
use crate::operation::Failure;
use crate::record::{Intervals, Ledger, Tally, Window};
use crate::routing::{Book, Spread};

/// A player: a share of the tape, its connections and what it records.
pub struct Player<'tape, W = Text> {
    tape: &'tape Tape,
    book: Book<'tape>,
    share: Share,
    window: Window,
    depth: usize,
    /// Where several servers are used: which key is whose.
    spread: Option<&'tape Spread>,
    connections: Vec<Connection<'tape, W>>,
    sets: Sets,
    /// Connections with bytes to write that nobody has looked at.
    unsent: VecDeque<usize>,
    /// Where connections read to.
    shared: Vec<u8>,
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
            sets: Sets::new(connections, 1, depth),
            unsent: VecDeque::with_capacity(connections),
            shared: vec![0; READ_BYTES],
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
        let (sets, servers) = (self.connections.len(), spread.servers());
        self.connections = (0..sets * servers).map(|_| Connection::new(self.depth)).collect();
        self.sets = Sets::new(sets, servers, self.depth);
        self.unsent = VecDeque::with_capacity(self.connections.len());
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

    /// Whether some set could be used.
    pub fn any_up(&self) -> bool {
        self.sets.any_up()
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
        let mut each = self.connections.iter().enumerate();
        each.any(|(c, connection)| self.sets.is_up(c) && connection.owes_barrier())
    }

    /// At the end of the window, ask each connection for the reply that ends its quiet operations.
    pub fn close_quiet(&mut self, now_ns: u64) {
        if !self.closing(now_ns) {
            return;
        }
        for c in 0..self.connections.len() {
            if self.sets.is_up(c) && self.connections[c].owes_barrier() {
                self.will_send(c);
                self.connections[c].send_barrier();
                self.in_flight += 1;
                self.sets.began_on(c);
            }
        }
    }

    /// So many operations of a connection's set are over.
    #[inline]
    fn ended(&mut self, c: usize, operations: usize) {
        self.in_flight -= operations as u64;
        self.sets.ended(c, operations);
    }

    /// A connection that has bytes to write since it had none.
    #[inline]
    pub fn next_unsent(&mut self) -> Option<usize> {
        self.unsent.pop_front()
    }

    /// Bytes to write on a connection, stamped as sent now.
    #[inline]
    pub fn outgoing(&mut self, c: usize, now_ns: u64) -> Batch<'_> {
        let connection = &mut self.connections[c];
        connection.stamp(now_ns, &mut self.ledger);
        connection.outgoing()
    }

    #[inline]
    pub fn has_outgoing(&self, c: usize) -> bool {
        self.connections[c].has_outgoing()
    }

    /// Whether writing what a connection has may complete operations.
    #[inline]
    pub fn has_quiet(&self, c: usize) -> bool {
        self.connections[c].has_quiet()
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
        self.connections[c].incoming(&mut self.shared)
    }

    /// So many bytes were read. After a violation the connection is down.
    #[inline]
    pub fn read(&mut self, c: usize, bytes: usize, now_ns: u64) -> Result<(), Violation> {
        let connection = &mut self.connections[c];
        let had_outgoing = connection.has_outgoing();
        let (ended, read) =
            connection.read(&self.shared, bytes, now_ns, self.book, &mut self.ledger);
        if connection.has_outgoing() && !had_outgoing {
            self.unsent.push_back(c);
        }
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
        self.sets.lost(c);
        self.last_reply_ns = self.last_reply_ns.max(now_ns);
    }

    /// The connection is there again.
    pub fn restored(&mut self, c: usize) {
        self.sets.restored(c);
        self.ledger.tally.reconnects += 1;
    }

    pub fn is_idle(&self, c: usize) -> bool {
        self.connections[c].in_flight() == 0
    }

    pub fn is_up(&self, c: usize) -> bool {
        self.sets.is_up(c)
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
