//! Event loops: each thread serves many connections from one epoll set, level-triggered. A busy one
//! goes on asking for a while before it sleeps: nobody has to wake it then.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;

use crate::guest::Guest;
use crate::inbox::Inbox;
use crate::session::Session;
use crate::state::{State, now_s};
use crate::stream::{Input, Stream};

const EVENTS_AT_ONCE: usize = 256;
/// The eventfd that wakes a loop; connections have the numbers below.
const WAKE: u64 = u64::MAX;

/// How long a busy loop that has nothing to do goes on asking.
pub const BUSY_FOR: Duration = Duration::from_millis(2);
/// Questions between two looks at the clock.
const ASKS: usize = 16;
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Serve until the inbox says stop; with nothing to do, go on asking for so long before sleeping.
pub fn run(inbox: &Inbox, state: &State, busy_for: Duration) -> io::Result<()> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &inbox.wake, EventData::new_u64(WAKE), EventFlags::IN)?;
    let conversations = Vec::new();
    let mut body = Body { inbox, state, epoll, busy_for, conversations, free: Vec::new() };
    let ran = body.run();
    body.conversations.iter().flatten().for_each(|open| open.stream.shutdown());
    ran
}

struct Conversation {
    stream: Stream,
    guest: Guest,
    session: Session,
    input: Input,
    out: Vec<u8>,
    written: usize,
    closing: bool,
    /// It waits until the socket can be written to: the peer does not read, or it is the turn of
    /// the others after a long reply.
    blocked: bool,
}

struct Body<'a> {
    inbox: &'a Inbox,
    state: &'a State,
    epoll: OwnedFd,
    busy_for: Duration,
    conversations: Vec<Option<Box<Conversation>>>,
    free: Vec<usize>,
}

impl Body<'_> {
    fn run(&mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_AT_ONCE);
        while !self.inbox.stopped() {
            self.wait(&mut events)?;
            for event in &events {
                match event.data.u64() {
                    WAKE => self.welcome(),
                    number => self.attend(number as usize),
                }
            }
        }
        Ok(())
    }

    /// Fill `events`, which are none where a signal came.
    fn wait(&self, events: &mut Vec<Event>) -> io::Result<()> {
        let mut ask = |timeout| {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), timeout) {
                Ok(count) => Ok(count),
                Err(rustix::io::Errno::INTR) => Ok(0),
                Err(error) => Err(error),
            }
        };
        if self.busy_for > Duration::ZERO {
            let began = Instant::now();
            while began.elapsed() < self.busy_for {
                for _ in 0..ASKS {
                    if ask(Some(&AT_ONCE))? > 0 {
                        return Ok(());
                    }
                }
            }
        }
        ask(None)?;
        Ok(())
    }

    fn welcome(&mut self) {
        self.inbox.calm();
        for (stream, guest) in self.inbox.take() {
            let number = self.free.pop().unwrap_or_else(|| {
                self.conversations.push(None);
                self.conversations.len() - 1
            });
            let data = EventData::new_u64(number as u64);
            let watched = stream.set_nonblocking(true).and_then(|()| {
                epoll::add(&self.epoll, &stream, data, EventFlags::IN).map_err(io::Error::from)
            });
            if watched.is_err() {
                self.free.push(number);
                continue;
            }
            self.conversations[number] = Some(Box::new(Conversation {
                stream,
                guest,
                session: Session::default(),
                input: Input::new(),
                out: Vec::with_capacity(4096),
                written: 0,
                closing: false,
                blocked: false,
            }));
        }
    }

    fn attend(&mut self, number: usize) {
        let Some(conversation) = self.conversations.get_mut(number).and_then(Option::as_mut) else {
            return;
        };
        let was_blocked = conversation.blocked;
        let alive = conversation.turn(self.state);
        if !matches!(alive, Ok(true)) {
            // Closing the socket takes it out of the epoll set.
            self.conversations[number] = None;
            self.free.push(number);
            return;
        }
        if conversation.blocked != was_blocked {
            let flags = if conversation.blocked { EventFlags::OUT } else { EventFlags::IN };
            let data = EventData::new_u64(number as u64);
            if epoll::modify(&self.epoll, &conversation.stream, data, flags).is_err() {
                self.conversations[number] = None;
                self.free.push(number);
            }
        }
    }
}

impl Conversation {
    /// Go on as far as the socket allows; false when the conversation is over.
    fn turn(&mut self, state: &State) -> io::Result<bool> {
        loop {
            if !self.step(state)? {
                return Ok(false);
            }
            // What TLS has decrypted already makes no socket readable.
            if self.blocked || !self.stream.holds_input() {
                return Ok(true);
            }
        }
    }

    fn step(&mut self, state: &State) -> io::Result<bool> {
        let now_s = now_s();
        if self.blocked {
            self.blocked = !self.flush(state)?;
        } else {
            match self.stream.read(self.input.room()) {
                Ok(0) => {
                    self.stream.say_goodbye();
                    return Ok(false);
                }
                Ok(bytes) => {
                    self.input.filled(bytes);
                    self.guest.heard(bytes, now_s);
                }
                Err(error) if is_passing(&error) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        if !self.blocked && !self.closing {
            let fed = self.session.feed(self.input.pending(), state, now_s, &mut self.out);
            self.input.consume(fed.consumed);
            self.closing = fed.close;
            self.blocked = !self.flush(state)? || fed.paused;
        }
        if self.closing && !self.blocked {
            self.stream.say_goodbye();
            self.stream.shutdown();
            return Ok(false);
        }
        Ok(true)
    }

    /// Write what there is; false when the socket is full.
    fn flush(&mut self, state: &State) -> io::Result<bool> {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    self.written += bytes;
                    state.bytes_written.fetch_add(bytes as u64, Ordering::Relaxed);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.out.shrink_to(1 << 20);
        self.written = 0;
        match self.stream.flush() {
            Ok(()) => Ok(true),
            Err(error) if is_passing(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
