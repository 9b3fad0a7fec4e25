//! One connection: bytes in, requests, replies that wait for their instants, bytes out.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};

use cachemark_server::{Session, State};
use socket2::Socket;

use crate::agenda::Agenda;
use crate::clock::monotonic_ns;
use crate::frame::{Dialect, Kind, frame, spoil};
use crate::log::{Entry, Fate, Log};
use crate::plan::{Plan, Reply};

const ROOM_BYTES: usize = 64 * 1024;

/// What all connections share.
pub struct World {
    pub state: State,
    pub key_prefix: Vec<u8>,
    pub plan: Plan,
    pub log: Log,
    pub agenda: Agenda,
    /// When the script's first read came.
    pub began_ns: Option<u64>,
    pub now_s: u32,
}

impl World {
    fn restart(&mut self) {
        self.plan.restart();
        self.log.restart();
        self.began_ns = None;
    }
}

/// Bytes that go out together at an instant.
struct Pending {
    due_ns: u64,
    left: usize,
    entry: Option<Entry>,
    /// What the read has come to once these bytes are out; none for the first half of a reply.
    fate: Option<Fate>,
    close: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    Open,
    /// The socket takes no more for now.
    Blocked,
    Close,
}

pub struct Line {
    pub socket: Socket,
    /// Which of its slot's connections it is.
    pub life: u64,
    slot: usize,
    number: u64,
    session: Session,
    dialect: Option<Dialect>,
    input: Vec<u8>,
    filled: usize,
    replies: Vec<u8>,
    written: usize,
    queue: VecDeque<Pending>,
    last_due_ns: u64,
    /// Since the script began.
    answered: u64,
    epoch_ns: Option<u64>,
    /// It says nothing any more.
    mute: bool,
    /// Watched for room to write, not for requests.
    pub blocked: bool,
}

impl Line {
    pub fn new(socket: Socket, slot: usize, life: u64, number: u64) -> Line {
        Line {
            socket,
            life,
            slot,
            number,
            session: Session::default(),
            dialect: None,
            input: vec![0; ROOM_BYTES],
            filled: 0,
            replies: Vec::with_capacity(ROOM_BYTES),
            written: 0,
            queue: VecDeque::with_capacity(64),
            last_due_ns: 0,
            answered: 0,
            epoch_ns: None,
            mute: false,
            blocked: false,
        }
    }

    /// Read once, take every whole request, and send what is due.
    pub fn read(&mut self, world: &mut World) -> After {
        if self.filled == self.input.len() {
            self.input.resize(self.input.len() * 2, 0);
        }
        match self.socket.read(&mut self.input[self.filled..]) {
            Ok(0) => return After::Close,
            Ok(bytes) => self.filled += bytes,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return After::Open,
            Err(_) => return After::Close,
        }
        let now_ns = monotonic_ns();
        let mut taken = 0;
        while let Some((length, kind)) =
            frame(&self.input[taken..self.filled], &world.key_prefix, &mut self.dialect)
        {
            self.take(taken..taken + length, kind, now_ns, world);
            taken += length;
        }
        self.input.copy_within(taken..self.filled, 0);
        self.filled -= taken;
        self.flush(monotonic_ns(), world)
    }

    fn take(&mut self, at: std::ops::Range<usize>, kind: Kind, now_ns: u64, world: &mut World) {
        if kind == Kind::Restart {
            world.restart();
        }
        if kind == Kind::Read {
            self.scripted(at, now_ns, world);
        } else if !self.mute {
            let (bytes, close) = self.carry_out(at, world);
            self.queue(now_ns, bytes, None, None, world);
            if close {
                self.end(now_ns, None, world);
            }
        }
    }

    fn scripted(&mut self, at: std::ops::Range<usize>, now_ns: u64, world: &mut World) {
        let entry = world.log.receive(now_ns, self.number);
        let fate = |world: &mut World, fate| {
            if let Some(record) = world.log.get(entry) {
                record.fate = fate;
            }
        };
        if self.mute {
            return fate(world, Fate::Behind);
        }
        let began_ns = *world.began_ns.get_or_insert(now_ns);
        if self.epoch_ns != world.began_ns {
            (self.epoch_ns, self.answered) = (world.began_ns, 0);
        }
        match world.plan.next(now_ns - began_ns, self.answered) {
            Reply::Never => {
                self.mute = true;
                fate(world, Fate::Dropped);
            }
            Reply::Close { at_ns } => {
                fate(world, Fate::Closed);
                self.end(began_ns + at_ns, entry, world);
            }
            Reply::At { first_ns, last_ns, wrong } => {
                self.answered += 1;
                let from = self.replies.len();
                let (bytes, _) = self.carry_out(at, world);
                let spoilt = wrong && spoil(&mut self.replies[from..]);
                let head = if first_ns < last_ns { bytes / 2 } else { 0 };
                if head > 0 {
                    self.queue(began_ns + first_ns, head, entry, None, world);
                }
                let fate = if spoilt { Fate::Wrong } else { Fate::Answered };
                self.queue(began_ns + last_ns, bytes - head, entry, Some(fate), world);
            }
        }
    }

    /// Have the embedded server's session answer: the bytes it has to say, and whether it ends.
    fn carry_out(&mut self, at: std::ops::Range<usize>, world: &World) -> (usize, bool) {
        let before = self.replies.len();
        let mut from = at.start;
        loop {
            let input = &self.input[from..at.end];
            let fed = self.session.feed(input, &world.state, world.now_s, &mut self.replies);
            from += fed.consumed;
            if fed.close || !fed.paused {
                return (self.replies.len() - before, fed.close);
            }
        }
    }

    fn end(&mut self, due_ns: u64, entry: Option<Entry>, world: &mut World) {
        self.queue(due_ns, 0, entry, None, world);
        if let Some(last) = self.queue.back_mut() {
            last.close = true;
        }
        self.mute = true;
    }

    /// A connection's replies go out in order, so none before the one in front of it.
    fn queue(
        &mut self,
        due_ns: u64,
        left: usize,
        entry: Option<Entry>,
        fate: Option<Fate>,
        world: &mut World,
    ) {
        self.last_due_ns = self.last_due_ns.max(due_ns);
        let due_ns = self.last_due_ns;
        if let Some(record) = world.log.get(entry) {
            record.due_ns = due_ns;
        }
        self.queue.push_back(Pending { due_ns, left, entry, fate, close: false });
        // What is due already goes out with the read that brought it.
        if due_ns > monotonic_ns() {
            world.agenda.add(due_ns, self.slot, self.life);
        }
    }

    /// Send what is due by now.
    pub fn flush(&mut self, now_ns: u64, world: &mut World) -> After {
        while let Some(pending) = self.queue.front_mut().filter(|front| front.due_ns <= now_ns) {
            let sent_ns = monotonic_ns();
            if let Some(record) = world.log.get(pending.entry) {
                if record.first_ns == 0 {
                    record.first_ns = sent_ns;
                }
                if let Some(fate) = pending.fate {
                    record.sent_ns = sent_ns;
                    record.fate = fate;
                }
            }
            let bytes = &self.replies[self.written..self.written + pending.left];
            match write(&mut self.socket, bytes) {
                Ok(bytes) => {
                    self.written += bytes;
                    pending.left -= bytes;
                }
                Err(_) => return After::Close,
            }
            if pending.left > 0 {
                return After::Blocked;
            }
            if pending.close {
                return After::Close;
            }
            self.queue.pop_front();
        }
        if self.queue.is_empty() {
            self.replies.clear();
            self.written = 0;
        } else if self.written > ROOM_BYTES {
            self.replies.drain(..self.written);
            self.written = 0;
        }
        After::Open
    }
}

/// As many bytes as the socket takes.
fn write(socket: &mut Socket, bytes: &[u8]) -> io::Result<usize> {
    if bytes.is_empty() {
        return Ok(0);
    }
    match socket.write(bytes) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        result => result,
    }
}
