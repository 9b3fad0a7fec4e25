//! Event loops: each thread serves many connections from one epoll set, level-triggered.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use crate::guest::Guest;
use crate::session::Session;
use crate::state::{State, now_s};
use crate::stream::{Input, Stream};

const EVENTS_AT_ONCE: usize = 256;
/// The eventfd that wakes a loop; connections have the numbers below.
const WAKE: u64 = u64::MAX;

/// A loop that runs, seen from outside.
pub struct Loop {
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<()>>,
}

struct Inbox {
    arrived: Mutex<Vec<(Stream, Guest)>>,
    wake: OwnedFd,
    stop: AtomicBool,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Vec<(Stream, Guest)>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Vec<(Stream, Guest)> {
        std::mem::take(&mut *self.lock())
    }

    fn rouse(&self) {
        // The counter of an eventfd is full only when the loop has been woken anyway.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

impl Loop {
    pub fn start(number: usize, state: &Arc<State>) -> io::Result<Loop> {
        let inbox = Arc::new(Inbox {
            arrived: Mutex::new(Vec::new()),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            stop: AtomicBool::new(false),
        });
        let mut body = Body::new(Arc::clone(&inbox), Arc::clone(state))?;
        let name = format!("loop {number}");
        let thread = thread::Builder::new().name(name).spawn(move || body.run())?;
        Ok(Loop { inbox, thread: Some(thread) })
    }

    /// Hand over a connection.
    pub fn serve(&self, stream: Stream, guest: Guest) {
        self.inbox.lock().push((stream, guest));
        self.inbox.rouse();
    }

    /// Close all its connections and wait for it to end.
    pub fn stop(&mut self) {
        self.inbox.stop.store(true, Ordering::Release);
        self.inbox.rouse();
        if let Some(thread) = self.thread.take() {
            // A loop that panicked has ended too.
            let _ = thread.join();
        }
    }
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

struct Body {
    inbox: Arc<Inbox>,
    state: Arc<State>,
    epoll: OwnedFd,
    conversations: Vec<Option<Box<Conversation>>>,
    free: Vec<usize>,
}

impl Body {
    fn new(inbox: Arc<Inbox>, state: Arc<State>) -> io::Result<Body> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &inbox.wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Body { inbox, state, epoll, conversations: Vec::new(), free: Vec::new() })
    }

    fn run(&mut self) {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_AT_ONCE);
        while !self.inbox.stop.load(Ordering::Acquire) {
            events.clear();
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, spare, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    eprintln!("cachemark-engine: an event loop ended: {error}");
                    return;
                }
            }
            for event in &events {
                match event.data.u64() {
                    WAKE => self.welcome(),
                    number => self.attend(number as usize),
                }
            }
        }
        // Those that came last may not be watched yet.
        let open = self.conversations.drain(..).flatten();
        let open = open.map(|conversation| (conversation.stream, conversation.guest));
        for (stream, _guest) in open.chain(self.inbox.take()) {
            stream.shutdown();
        }
    }

    fn welcome(&mut self) {
        let mut count = [0; 8];
        // Nothing to read means that another event has taken it.
        let _ = rustix::io::read(&self.inbox.wake, &mut count);
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
        let alive = conversation.turn(&self.state);
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
        if self.blocked {
            self.blocked = !self.flush(state)?;
        } else {
            match self.stream.read(self.input.room()) {
                Ok(0) => return Ok(false),
                Ok(bytes) => {
                    self.input.filled(bytes);
                    self.guest.heard(bytes, now_s());
                }
                Err(error) if is_passing(&error) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        if !self.blocked && !self.closing {
            let fed = self.session.feed(self.input.pending(), state, now_s(), &mut self.out);
            self.input.consume(fed.consumed);
            self.closing = fed.close;
            self.blocked = !self.flush(state)? || fed.paused;
        }
        if self.closing && !self.blocked {
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
