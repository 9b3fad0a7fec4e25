//! Decides which operation is sent when, and on which connection. No I/O.

mod channels;
mod issuing;
mod lifetimes;
mod renewal;
mod slice;
mod slices;
mod think_time;
mod work_slice;

use std::collections::VecDeque;

use cachemark_protocol::reply_errors::Violation;
use cachemark_tape::{Op, Tape};

use channels::Channels;
use lifetimes::Lifetimes;
pub use slice::SliceResult;
use slice::SliceState;
use think_time::ThinkQueue;
pub use work_slice::WorkSlice;

use crate::connection::{Connection, READ_BYTES, Text, Wire, WriteBatch};
use crate::operation::Failure;
use crate::options::Refill;
use crate::record::{Intervals, LoggedCalls, Metrics, Recorder, Window};
use crate::routing::{KeyRouting, TapeView};

/// Plays one work slice over a number of connections, and records the results.
pub struct Player<'tape, W = Text> {
    tape: &'tape Tape,
    view: TapeView<'tape>,
    work_slice: WorkSlice,
    window: Window,
    /// Open loop: the instant of the tape's time 0. It is the start of the window, but moves in the pauses
    /// between slices.
    tape_origin_ns: u64,
    slice: Option<Box<SliceState>>,
    depth: usize,
    refill: Refill,
    /// Which server has which key, if there are several servers.
    routing: Option<&'tape KeyRouting>,
    connections: Vec<Connection<'tape, W>>,
    channels: Channels,
    /// Absent if connections stay open.
    lifetimes: Option<Box<Lifetimes>>,
    /// Connections that have output since the last flush.
    unsent: VecDeque<usize>,
    /// The read buffer that the connections share.
    shared: Vec<u8>,
    /// Open loop: operations that are due and wait for a channel with room.
    queue: VecDeque<(Op, u64)>,
    /// Closed loop with think times: operations whose think time is not over.
    think_queue: ThinkQueue,
    next_channel: usize,
    in_flight: u64,
    stopped: bool,
    /// When the last reply came, and when the last operation was sent.
    last_reply_ns: u64,
    last_send_ns: u64,
    recorder: Recorder,
}

impl<'tape, W: Wire> Player<'tape, W> {
    /// A player for one server. All connections are new and up.
    pub fn new(
        tape: &'tape Tape,
        work_slice: WorkSlice,
        window: Window,
        connections: usize,
        depth: usize,
    ) -> Player<'tape, W> {
        let recorder = Recorder::new(Metrics::of_window(tape, &window));
        let recorder = match work_slice {
            WorkSlice::Lane { .. } => recorder.with_groups(tape, connections * depth),
            WorkSlice::Prefill { .. } => recorder,
        };
        Player {
            tape,
            view: TapeView::new(tape, None),
            work_slice,
            window,
            tape_origin_ns: window.start_ns,
            slice: None,
            depth,
            refill: Refill::Each,
            routing: None,
            connections: (0..connections).map(|_| Connection::new(depth, connections)).collect(),
            channels: Channels::new(connections, 1, depth, Refill::Each),
            lifetimes: None,
            unsent: VecDeque::with_capacity(connections),
            shared: vec![0; READ_BYTES],
            queue: VecDeque::with_capacity(1024),
            think_queue: ThinkQueue::new(connections, depth),
            next_channel: 0,
            in_flight: 0,
            stopped: false,
            last_reply_ns: window.start_ns,
            last_send_ns: window.start_ns,
            recorder,
        }
    }

    /// The same for another `refill`. Call it before `with_routing`.
    pub fn with_refill(mut self, refill: Refill) -> Player<'tape, W> {
        self.refill = refill;
        self.channels = Channels::new(self.connections.len(), 1, self.depth, refill);
        self
    }

    /// The same for several servers, with as many connections to each of them.
    pub fn with_routing(mut self, routing: &'tape KeyRouting) -> Player<'tape, W> {
        let (channels, servers) = (self.connections.len(), routing.servers());
        let count = channels * servers;
        self.connections = (0..count).map(|_| Connection::new(self.depth, count)).collect();
        self.channels = Channels::new(channels, servers, self.depth, self.refill);
        self.unsent = VecDeque::with_capacity(self.connections.len());
        self.routing = Some(routing);
        self.view = TapeView::new(self.tape, Some(routing));
        self
    }

    /// The same with a record of each call, in an open loop. The client has `players` players.
    pub fn with_call_log(mut self, players: usize) -> Player<'tape, W> {
        if self.is_open_loop() {
            self.recorder = self.recorder.with_call_log(players);
        }
        self
    }

    /// The records of its calls; none without a call log.
    pub fn take_calls(&mut self) -> LoggedCalls {
        self.recorder.take_calls(self.tape, self.tape_origin_ns)
    }

    /// The records so far.
    pub fn metrics(&self) -> &Metrics {
        &self.recorder.metrics
    }

    /// Hand over what has been recorded so far. False if that is not possible at once.
    pub fn hand_over_metrics(&mut self, intervals: &Intervals, length_ns: u64) -> bool {
        intervals.swap(&mut self.recorder.metrics, length_ns)
    }

    /// A write found the socket's send buffer full.
    pub fn blocked(&mut self) {
        self.recorder.metrics.blocked += 1;
    }

    pub fn timeout_ns(&self) -> u64 {
        self.window.timeout_ns
    }

    /// Start no more operations.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// When the last reply came and when the last operation was sent, in ns from the start of the
    /// window.
    pub fn elapsed_ns(&self) -> (u64, u64) {
        let start = self.window.start_ns;
        (self.last_reply_ns.max(self.last_send_ns) - start, self.last_send_ns - start)
    }

    /// Whether at least one channel can be used.
    pub fn any_up(&self) -> bool {
        self.channels.any_up()
    }

    /// Whether the window is over: no operation will start, and none is in flight.
    pub fn finished(&self, now_ns: u64) -> bool {
        self.closing(now_ns)
            && self.in_flight == 0
            && self.queue.is_empty()
            && !self.needs_barrier()
            // The next window begins with open connections.
            && !self.is_renewing()
    }

    /// Whether no more operations will start.
    pub fn closing(&self, now_ns: u64) -> bool {
        self.stopped
            || now_ns >= self.window.end_ns
            || (self.exhausted() && self.think_queue.is_empty())
    }

    fn needs_barrier(&self) -> bool {
        let mut each = self.connections.iter().enumerate();
        each.any(|(c, connection)| self.channels.is_up(c) && connection.needs_barrier())
    }

    /// At the end of the window: send a barrier on each connection that needs one.
    pub fn send_barriers(&mut self, now_ns: u64) {
        if !self.closing(now_ns) {
            return;
        }
        for c in 0..self.connections.len() {
            if self.channels.is_up(c) && self.connections[c].needs_barrier() {
                self.send_barrier(c);
            }
        }
    }

    fn send_barrier(&mut self, c: usize) {
        self.mark_unsent(c);
        self.connections[c].send_barrier();
        self.in_flight += 1;
        self.channels.operation_began_on(c);
    }

    /// Operations on the channel of a connection have ended.
    #[inline]
    fn operations_ended(&mut self, c: usize, operations: usize, now_ns: u64) {
        if operations > 0
            && let Some(slice) = &mut self.slice
        {
            slice.operations_ended(self.channels.channel(c), operations as u64, now_ns);
        }
        if self.lifetimes.is_some() {
            self.age(c, operations);
        }
        self.in_flight -= operations as u64;
        self.channels.operations_ended(c, operations);
    }

    /// The next connection that has output since the last flush.
    #[inline]
    pub fn next_unsent(&mut self) -> Option<usize> {
        self.unsent.pop_front()
    }

    /// The output of a connection. Its operations get the send time `now_ns`.
    #[inline]
    pub fn output(&mut self, c: usize, now_ns: u64) -> WriteBatch<'_> {
        let connection = &mut self.connections[c];
        connection.mark_sent(now_ns, &mut self.recorder);
        connection.output()
    }

    #[inline]
    pub fn has_output(&self, c: usize) -> bool {
        self.connections[c].has_output()
    }

    /// Whether a write on this connection may complete operations.
    #[inline]
    pub fn has_quiet(&self, c: usize) -> bool {
        self.connections[c].has_quiet()
    }

    /// `bytes` bytes were written. True if that completed operations without a reply.
    #[inline]
    pub fn wrote(&mut self, c: usize, bytes: usize, now_ns: u64) -> bool {
        self.choose_part(c);
        let ended = self.connections[c].wrote(bytes, now_ns, self.view, &mut self.recorder);
        self.operations_ended(c, ended, now_ns);
        self.last_send_ns = now_ns;
        ended > 0
    }

    #[inline]
    pub fn read_buffer(&mut self, c: usize) -> &mut [u8] {
        self.connections[c].read_buffer(&mut self.shared)
    }

    /// `bytes` bytes were read. After a violation the connection is down.
    #[inline]
    pub fn read(&mut self, c: usize, bytes: usize, now_ns: u64) -> Result<(), Violation> {
        self.choose_part(c);
        let connection = &mut self.connections[c];
        let had_outgoing = connection.has_output();
        let (ended, read) =
            connection.read(&self.shared, bytes, now_ns, self.view, &mut self.recorder);
        if connection.has_output() && !had_outgoing {
            self.unsent.push_back(c);
        }
        self.operations_ended(c, ended, now_ns);
        self.last_reply_ns = now_ns;
        if read.is_err() {
            self.connection_lost(c, Failure::Protocol, now_ns);
        }
        read
    }

    /// The connection is lost. The operations on it have failed.
    pub fn connection_lost(&mut self, c: usize, failure: Failure, now_ns: u64) {
        self.fail_connection(c, failure, u64::MAX, now_ns);
    }

    fn fail_connection(&mut self, c: usize, failure: Failure, before_ns: u64, now_ns: u64) {
        self.choose_part(c);
        let connection = &mut self.connections[c];
        let ended = connection.fail(failure, before_ns, now_ns, self.view, &mut self.recorder);
        self.operations_ended(c, ended, now_ns);
        self.channels.connection_lost(c);
        self.begin_life(self.channels.channel(c));
        self.last_reply_ns = self.last_reply_ns.max(now_ns);
    }

    /// The connection is open again.
    pub fn connection_restored(&mut self, c: usize) {
        self.channels.connection_restored(c);
        self.count_opened(c);
    }

    /// An attempt to open a connection failed.
    pub fn connect_failed(&mut self) {
        self.recorder.metrics.failed_connects += 1;
    }

    pub fn is_idle(&self, c: usize) -> bool {
        self.connections[c].in_flight() == 0
    }

    pub fn is_up(&self, c: usize) -> bool {
        self.channels.is_up(c)
    }

    /// When the next operation times out.
    pub fn next_timeout_ns(&self) -> Option<u64> {
        let oldest = self.connections.iter().filter_map(|each| each.oldest_sent_ns()).min();
        oldest.map(|sent_ns| sent_ns + self.window.timeout_ns)
    }

    /// Fail every connection with an operation that has timed out, because later replies on it could
    /// not be assigned to operations. The caller closes each connection that is passed to `timed_out`.
    pub fn expire(&mut self, now_ns: u64, mut timed_out: impl FnMut(usize)) {
        let Some(before_ns) = now_ns.checked_sub(self.window.timeout_ns) else {
            return;
        };
        for c in 0..self.connections.len() {
            if self.connections[c].oldest_sent_ns().is_some_and(|sent| sent <= before_ns) {
                self.fail_connection(c, Failure::Timeout, before_ns, now_ns);
                timed_out(c);
            }
        }
    }

    /// There has been no server for long: end here, unless operations are still to become due.
    pub fn give_up(&mut self, now_ns: u64) {
        if !self.is_open_loop() || self.closing(now_ns) {
            self.stop();
            self.abandon_queue(now_ns);
        }
    }

    /// Give up the operations that are due and were never sent. Their response time is at least the
    /// time until now.
    pub fn abandon_queue(&mut self, now_ns: u64) {
        while let Some((op, due_ns)) = self.queue.pop_front() {
            self.recorder.never_sent(op, due_ns, now_ns);
        }
    }

    pub fn progress(&self) -> (u64, u64) {
        (self.recorder.metrics.ok(), self.recorder.metrics.failed())
    }
}
