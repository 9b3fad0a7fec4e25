//! A simulated clock and a simulated server. Time passes only in `wait`, which jumps to the next event.
//! So a trial of minutes takes milliseconds, and every time is exact.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::rc::Rc;

use cachemark_load::{Clock, Network, Ready, WaitLimit};
use cachemark_protocol::text::command::Command;
use cachemark_protocol::text::request::{Parsed, parse};
use cachemark_tape::Tape;

use crate::ground_truth::{GroundTruth, RequestOutcome};
use crate::script::{Request, Script, ScriptedReply};

/// The simulation starts at this time and not at 0, because 0 means "not yet" in some fields.
const START_NS: u64 = 1_000_000_000;

/// How far, and how often, the simulated wall clock is set: forwards and backwards in turn.
const WALL_CLOCK_STEP_NS: u64 = 1_000_000_000;
const WALL_CLOCK_SET_EVERY_NS: u64 = 3_000_000_000;

/// A clock that only moves when it is set.
#[derive(Clone)]
pub struct VirtualClock(Rc<Cell<u64>>);

#[cfg(test)]
impl VirtualClock {
    /// Let time pass while no event loop runs.
    pub fn pause(&self, length_ns: u64) {
        self.0.set(self.0.get() + length_ns);
    }
}

impl Clock for VirtualClock {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }

    fn wall_ns(&self) -> u64 {
        let now_ns = self.now_ns();
        now_ns + WALL_CLOCK_STEP_NS * (now_ns / WALL_CLOCK_SET_EVERY_NS % 2)
    }
}

/// The client does not run during the first `length_ns` of each period.
#[derive(Clone, Copy, Debug)]
pub struct ProcessPause {
    pub length_ns: u64,
    pub period_ns: u64,
}

/// A part of a reply in flight, ordered by the time of its arrival.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ScheduledReply {
    at_ns: u64,
    order: u64,
    connection: usize,
    generation: u64,
    bytes: Vec<u8>,
    /// The request that this part completes.
    completes: Option<(usize, RequestOutcome)>,
}

/// One connection, as the server sees it.
#[derive(Default)]
struct SimulatedConnection {
    /// How often the connection was closed. Replies of an older generation are lost.
    generation: u64,
    /// When the last reply arrives: later replies cannot arrive before it.
    last_reply_ns: u64,
    /// The beginning of an incomplete request.
    unparsed: Vec<u8>,
    arrived: VecDeque<u8>,
    /// Requests without a reply so far.
    outstanding: VecDeque<usize>,
    /// Requests whose complete reply has arrived and has not been read.
    answered: Vec<(usize, RequestOutcome)>,
}

pub struct SimulatedNetwork<'tape> {
    clock: VirtualClock,
    tape: &'tape Tape,
    script: Script,
    connections: Vec<SimulatedConnection>,
    in_flight_replies: BinaryHeap<Reverse<ScheduledReply>>,
    ready: Vec<Ready>,
    opening: Vec<usize>,
    pause: Option<ProcessPause>,
    /// The time that a read or a write takes the client.
    io_call_ns: u64,
    replies_sent: u64,
    requests_seen: u64,
    /// When the window started: the times of the tape count from there.
    window_ns: u64,
    /// The truth about each request.
    pub ground_truth: GroundTruth,
}

impl<'tape> SimulatedNetwork<'tape> {
    /// Open connections to a server that follows a script and knows the values of the tape.
    pub fn new(
        tape: &'tape Tape,
        connections: usize,
        script: Script,
        pause: Option<ProcessPause>,
        timeout_ns: u64,
    ) -> SimulatedNetwork<'tape> {
        SimulatedNetwork {
            clock: VirtualClock(Rc::new(Cell::new(START_NS))),
            tape,
            script,
            connections: (0..connections).map(|_| SimulatedConnection::default()).collect(),
            in_flight_replies: BinaryHeap::new(),
            ready: Vec::new(),
            opening: Vec::new(),
            pause,
            io_call_ns: 0,
            replies_sent: 0,
            requests_seen: 0,
            window_ns: START_NS,
            ground_truth: GroundTruth::new(timeout_ns),
        }
    }

    /// Let each read and each write take the client this long.
    pub fn with_io_call_time(self, io_call_ns: u64) -> SimulatedNetwork<'tape> {
        SimulatedNetwork { io_call_ns, ..self }
    }

    fn advance(&self, ns: u64) {
        self.clock.0.set(self.clock.now_ns() + ns);
    }

    /// A window starts. Requests before it do not count.
    pub fn begin_window(&mut self, start_ns: u64) {
        self.window_ns = start_ns;
        self.ground_truth.begin(start_ns);
    }

    pub fn clock(&self) -> VirtualClock {
        self.clock.clone()
    }

    /// Take one request from the input of a connection. False if it is incomplete.
    fn take(&mut self, c: usize) -> bool {
        let bytes = std::mem::take(&mut self.connections[c].unparsed);
        let mut replies = Vec::new();
        let used = match parse(&bytes) {
            Parsed::Incomplete => 0,
            Parsed::Command(Command::Version, length) => {
                // A barrier is not an operation: the reply is sent at once, but after earlier replies.
                let at_ns = self.clock.now_ns().max(self.connections[c].last_reply_ns);
                replies.push((at_ns, b"VERSION scripted\r\n".to_vec(), None));
                length
            }
            Parsed::Command(Command::Get { mut keys, .. }, length) => {
                let key = keys.next().expect("a key");
                self.answer(c, key, &mut replies);
                length
            }
            other => panic!("the scripted server knows get and version, not {other:?}"),
        };
        self.connections[c].unparsed = bytes;
        self.connections[c].unparsed.drain(..used);
        for (at_ns, bytes, completes) in replies {
            self.schedule_reply(c, at_ns, bytes, completes);
        }
        used > 0
    }

    fn answer(&mut self, c: usize, key: &[u8], replies: &mut Vec<Reply>) {
        let now_ns = self.clock.now_ns();
        let at_ns = now_ns - START_NS;
        let reply = (self.script)(&Request { number: self.requests_seen, at_ns });
        self.requests_seen += 1;
        let record = record_of(key);
        let due_ns = self.tape.is_open_loop().then(|| self.window_ns + self.tape.due_ns(record));
        let request = self.ground_truth.request_sent(due_ns, now_ns);
        self.connections[c].outstanding.push_back(request);
        let k = record as u32;
        let right = || value_block(self.tape, k, k);
        let mut whole = |at_ns: u64, bytes, end| {
            replies.push((START_NS + at_ns, bytes, Some((request, end))));
        };
        match reply {
            ScriptedReply::At(at_ns) => whole(at_ns, right(), RequestOutcome::Answered),
            ScriptedReply::Never => {}
            ScriptedReply::WrongKey(at_ns) => {
                whole(at_ns, value_block(self.tape, k ^ 1, k ^ 1), RequestOutcome::OtherKey);
            }
            ScriptedReply::WrongValue(at_ns) => {
                whole(at_ns, value_block(self.tape, k, k ^ 1), RequestOutcome::Wrong)
            }
            ScriptedReply::InHalves(first_ns, last_reply_ns) => {
                let mut head = right();
                let tail = head.split_off(head.len() / 2);
                replies.push((START_NS + first_ns, head, None));
                replies.push((
                    START_NS + last_reply_ns,
                    tail,
                    Some((request, RequestOutcome::Answered)),
                ));
            }
        }
    }

    fn schedule_reply(
        &mut self,
        c: usize,
        at_ns: u64,
        bytes: Vec<u8>,
        completes: Option<(usize, RequestOutcome)>,
    ) {
        let connection = &mut self.connections[c];
        connection.last_reply_ns = at_ns.max(connection.last_reply_ns);
        self.replies_sent += 1;
        self.in_flight_replies.push(Reverse(ScheduledReply {
            at_ns: connection.last_reply_ns,
            order: self.replies_sent,
            connection: c,
            generation: connection.generation,
            bytes,
            completes,
        }));
    }

    /// When the client runs again, if it wants to run at `at_ns`.
    fn after_pause(&self, at_ns: u64) -> u64 {
        let Some(ProcessPause { length_ns, period_ns }) = self.pause else { return at_ns };
        let phase = (at_ns - START_NS) % period_ns;
        if phase < length_ns { at_ns - phase + length_ns } else { at_ns }
    }

    /// Deliver the replies that have arrived by now.
    fn deliver(&mut self) {
        let now_ns = self.clock.now_ns();
        while self.in_flight_replies.peek().is_some_and(|Reverse(reply)| reply.at_ns <= now_ns) {
            let Some(Reverse(reply)) = self.in_flight_replies.pop() else { return };
            let connection = &mut self.connections[reply.connection];
            if connection.generation != reply.generation {
                continue;
            }
            if connection.arrived.is_empty() {
                self.ready.push(Ready { connection: reply.connection, writable: false });
            }
            connection.arrived.extend(reply.bytes);
            if let Some((request, end)) = reply.completes {
                connection.outstanding.pop_front();
                connection.answered.push((request, end));
            }
        }
    }
}

impl Network for SimulatedNetwork<'_> {
    fn connections(&self) -> usize {
        self.connections.len()
    }

    fn write(&mut self, c: usize, bytes: &[u8]) -> io::Result<usize> {
        self.connections[c].unparsed.extend_from_slice(bytes);
        while self.take(c) {}
        self.advance(self.io_call_ns);
        Ok(bytes.len())
    }

    fn read(&mut self, c: usize, into: &mut [u8]) -> io::Result<usize> {
        if self.connections[c].arrived.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.advance(self.io_call_ns);
        let now_ns = self.clock.now_ns();
        let connection = &mut self.connections[c];
        let read = io::Read::read(&mut connection.arrived, into);
        if connection.arrived.is_empty() {
            let answered = connection.answered.drain(..);
            answered
                .for_each(|(request, end)| self.ground_truth.request_ended(request, end, now_ns));
        }
        read
    }

    fn watch_writable(&mut self, _: usize, _: bool) -> io::Result<()> {
        Ok(()) // everything is always written whole
    }

    fn close(&mut self, c: usize) {
        let now_ns = self.clock.now_ns();
        let connection = &mut self.connections[c];
        let unread = connection.answered.drain(..).map(|(request, _)| request);
        self.ground_truth.connection_closed(unread.chain(connection.outstanding.drain(..)), now_ns);
        *connection = SimulatedConnection {
            generation: connection.generation + 1,
            ..SimulatedConnection::default()
        };
    }

    fn start_connect(&mut self, c: usize) -> io::Result<()> {
        self.opening.push(c);
        Ok(())
    }

    fn finish_connect(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, limit: WaitLimit) -> io::Result<usize> {
        let now_ns = self.clock.now_ns();
        self.ready.retain(|ready| !self.connections[ready.connection].arrived.is_empty());
        let limit_ns = limit.due_in_ns.into_iter().fold(limit.max_ns, u64::min);
        let in_flight_replies = self.in_flight_replies.peek().map(|Reverse(reply)| reply.at_ns);
        let busy = !self.ready.is_empty() || !self.opening.is_empty();
        let wake_ns = if busy {
            now_ns
        } else {
            in_flight_replies.into_iter().fold(now_ns + limit_ns, u64::min)
        };
        self.clock.0.set(self.after_pause(wake_ns.max(now_ns)));
        for c in std::mem::take(&mut self.opening) {
            self.ready.push(Ready { connection: c, writable: true });
        }
        self.deliver();
        Ok(self.ready.len())
    }

    fn ready(&self, n: usize) -> Ready {
        self.ready[n]
    }
}

type Reply = (u64, Vec<u8>, Option<(usize, RequestOutcome)>);

/// A hit with the name of key `k` and the value of key `of`.
fn value_block(tape: &Tape, k: u32, of: u32) -> Vec<u8> {
    let value = tape.value(of, tape.value_length(k));
    let key = tape.key(k);
    let mut block = Vec::with_capacity(key.len() + value.len() + 24);
    block.extend_from_slice(b"VALUE ");
    block.extend_from_slice(key);
    block.extend_from_slice(format!(" 0 {}\r\n", value.len()).as_bytes());
    block.extend_from_slice(value);
    block.extend_from_slice(b"\r\nEND\r\n");
    block
}

/// The record of a key: in the tapes of these cases, record `j` asks for the key `kj`.
fn record_of(key: &[u8]) -> u64 {
    key[1..].iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}
