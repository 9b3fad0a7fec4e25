//! One connection: it reads requests, queues replies until they are due, and writes them.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};

use cachemark_server::{Session, State};
use socket2::Socket;

use crate::clock::monotonic_ns;
use crate::log::{LogEntry, ReadLog, ReadOutcome};
use crate::planner::{PlannedReply, ReplyPlanner};
use crate::request::{ConnectionProtocol, RequestKind, corrupt_value, next_request};
use crate::timers::TimerQueue;

const BUFFER_BYTES: usize = 64 * 1024;

/// The state that all connections share.
pub struct ServerContext {
    pub state: State,
    pub key_prefix: Vec<u8>,
    pub planner: ReplyPlanner,
    pub log: ReadLog,
    pub timers: TimerQueue,
    /// When the first read of the script arrived.
    pub began_ns: Option<u64>,
    pub now_s: u32,
}

impl ServerContext {
    fn restart(&mut self) {
        self.planner.restart();
        self.log.restart();
        self.began_ns = None;
    }
}

/// Bytes that are due at the same time.
struct Pending {
    due_ns: u64,
    left: usize,
    entry: Option<LogEntry>,
    /// The outcome of the read once these bytes are sent; `None` for the first half of a reply.
    outcome: Option<ReadOutcome>,
    close: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionStatus {
    Open,
    /// The socket takes no more bytes now.
    Blocked,
    Close,
}

pub struct Connection {
    pub socket: Socket,
    /// Which one of the connections that have used this slot it is.
    pub generation: u64,
    slot: usize,
    number: u64,
    session: Session,
    protocol: Option<ConnectionProtocol>,
    input: Vec<u8>,
    filled: usize,
    replies: Vec<u8>,
    written: usize,
    queue: VecDeque<Pending>,
    last_due_ns: u64,
    /// Reads answered since the script started.
    answered: u64,
    epoch_ns: Option<u64>,
    /// The connection sends nothing any more.
    is_silent: bool,
    /// It waits until the socket is writable, and reads no requests meanwhile.
    pub blocked: bool,
}

impl Connection {
    pub fn new(socket: Socket, slot: usize, generation: u64, number: u64) -> Connection {
        Connection {
            socket,
            generation,
            slot,
            number,
            session: Session::default(),
            protocol: None,
            input: vec![0; BUFFER_BYTES],
            filled: 0,
            replies: Vec::with_capacity(BUFFER_BYTES),
            written: 0,
            queue: VecDeque::with_capacity(64),
            last_due_ns: 0,
            answered: 0,
            epoch_ns: None,
            is_silent: false,
            blocked: false,
        }
    }

    /// Read once, handle every complete request, and send what is due.
    pub fn read(&mut self, context: &mut ServerContext) -> ConnectionStatus {
        if self.filled == self.input.len() {
            self.input.resize(self.input.len() * 2, 0);
        }
        match self.socket.read(&mut self.input[self.filled..]) {
            Ok(0) => return ConnectionStatus::Close,
            Ok(bytes) => self.filled += bytes,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return ConnectionStatus::Open,
            Err(_) => return ConnectionStatus::Close,
        }
        let now_ns = monotonic_ns();
        let mut taken = 0;
        while let Some((length, kind)) =
            next_request(&self.input[taken..self.filled], &context.key_prefix, &mut self.protocol)
        {
            self.take(taken..taken + length, kind, now_ns, context);
            taken += length;
        }
        self.input.copy_within(taken..self.filled, 0);
        self.filled -= taken;
        self.flush(monotonic_ns(), context)
    }

    fn take(
        &mut self,
        at: std::ops::Range<usize>,
        kind: RequestKind,
        now_ns: u64,
        context: &mut ServerContext,
    ) {
        if kind == RequestKind::Restart {
            context.restart();
        }
        if kind == RequestKind::Read {
            self.answer_scripted(at, now_ns, context);
        } else if !self.is_silent {
            let (bytes, close) = self.execute(at, context);
            self.queue(now_ns, bytes, None, None, context);
            if close {
                self.close_at(now_ns, None, context);
            }
        }
    }

    fn answer_scripted(
        &mut self,
        at: std::ops::Range<usize>,
        now_ns: u64,
        context: &mut ServerContext,
    ) {
        let entry = context.log.receive(now_ns, self.number);
        let outcome = |context: &mut ServerContext, outcome| {
            if let Some(record) = context.log.get(entry) {
                record.outcome = outcome;
            }
        };
        if self.is_silent {
            return outcome(context, ReadOutcome::Behind);
        }
        let began_ns = *context.began_ns.get_or_insert(now_ns);
        if self.epoch_ns != context.began_ns {
            (self.epoch_ns, self.answered) = (context.began_ns, 0);
        }
        match context.planner.next(now_ns - began_ns, self.answered) {
            PlannedReply::Never => {
                self.is_silent = true;
                outcome(context, ReadOutcome::Dropped);
            }
            PlannedReply::Close { at_ns } => {
                outcome(context, ReadOutcome::Closed);
                self.close_at(began_ns + at_ns, entry, context);
            }
            PlannedReply::At { first_ns, last_ns, wrong } => {
                self.answered += 1;
                let from = self.replies.len();
                let (bytes, _) = self.execute(at, context);
                let corrupted = wrong && corrupt_value(&mut self.replies[from..]);
                let head = if first_ns < last_ns { bytes / 2 } else { 0 };
                if head > 0 {
                    self.queue(began_ns + first_ns, head, entry, None, context);
                }
                let outcome = if corrupted { ReadOutcome::Wrong } else { ReadOutcome::Answered };
                self.queue(began_ns + last_ns, bytes - head, entry, Some(outcome), context);
            }
        }
    }

    /// Execute requests in the embedded server's session. Returns the size of the reply, and whether
    /// the connection ends.
    fn execute(&mut self, at: std::ops::Range<usize>, context: &ServerContext) -> (usize, bool) {
        let before = self.replies.len();
        let mut from = at.start;
        loop {
            let input = &self.input[from..at.end];
            let fed = self.session.feed(input, &context.state, context.now_s, &mut self.replies);
            from += fed.consumed;
            if fed.close || !fed.paused {
                return (self.replies.len() - before, fed.close);
            }
        }
    }

    fn close_at(&mut self, due_ns: u64, entry: Option<LogEntry>, context: &mut ServerContext) {
        self.queue(due_ns, 0, entry, None, context);
        if let Some(last) = self.queue.back_mut() {
            last.close = true;
        }
        self.is_silent = true;
    }

    /// Queue a reply. It is not sent before the replies in front of it.
    fn queue(
        &mut self,
        due_ns: u64,
        left: usize,
        entry: Option<LogEntry>,
        outcome: Option<ReadOutcome>,
        context: &mut ServerContext,
    ) {
        self.last_due_ns = self.last_due_ns.max(due_ns);
        let due_ns = self.last_due_ns;
        if let Some(record) = context.log.get(entry) {
            record.due_ns = due_ns;
        }
        self.queue.push_back(Pending { due_ns, left, entry, outcome, close: false });
        // Bytes that are due already are sent at the end of the current read.
        if due_ns > monotonic_ns() {
            context.timers.add(due_ns, self.slot, self.generation);
        }
    }

    /// Send what is due.
    pub fn flush(&mut self, now_ns: u64, context: &mut ServerContext) -> ConnectionStatus {
        while let Some(pending) = self.queue.front_mut().filter(|front| front.due_ns <= now_ns) {
            let sent_ns = monotonic_ns();
            if let Some(record) = context.log.get(pending.entry) {
                if record.first_ns == 0 {
                    record.first_ns = sent_ns;
                }
                if let Some(outcome) = pending.outcome {
                    record.sent_ns = sent_ns;
                    record.outcome = outcome;
                }
            }
            let bytes = &self.replies[self.written..self.written + pending.left];
            match write(&mut self.socket, bytes) {
                Ok(bytes) => {
                    self.written += bytes;
                    pending.left -= bytes;
                }
                Err(_) => return ConnectionStatus::Close,
            }
            if pending.left > 0 {
                return ConnectionStatus::Blocked;
            }
            if pending.close {
                return ConnectionStatus::Close;
            }
            self.queue.pop_front();
        }
        if self.queue.is_empty() {
            self.replies.clear();
            self.written = 0;
        } else if self.written > BUFFER_BYTES {
            self.replies.drain(..self.written);
            self.written = 0;
        }
        ConnectionStatus::Open
    }
}

/// Write as many bytes as the socket takes.
fn write(socket: &mut Socket, bytes: &[u8]) -> io::Result<usize> {
    if bytes.is_empty() {
        return Ok(0);
    }
    match socket.write(bytes) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        result => result,
    }
}
