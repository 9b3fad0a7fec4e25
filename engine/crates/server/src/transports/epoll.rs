//! Event loops on epoll, level-triggered: each thread serves many connections. A busy loop polls for a while
//! before it sleeps, so that it need not be woken for the next event.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::time::{ClockId, clock_gettime};

use crate::connection::direct_send::DirectSend;
use crate::connection::guard::ConnectionGuard;
use crate::connection::input_buffer::{InputBuffer, ReadBuffers};
use crate::connection::stream::Stream;
use crate::session::Session;
use crate::state::server_state::State;
use crate::transports::inbox::Inbox;
use crate::transports::reading::{self, Received};
use crate::transports::watchers::Watchers;

const EVENTS_AT_ONCE: usize = 256;
/// The event data of the inbox's eventfd; connections have lower numbers.
const WAKE: u64 = u64::MAX;

/// How long a busy loop polls before it sleeps.
pub const BUSY_POLL: Duration = Duration::from_millis(2);
/// How often it polls between two looks at the clock.
const POLLS_PER_CLOCK_READ: usize = 16;
const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Serve until the inbox orders to stop. Poll for `busy_poll` before each sleep.
pub fn run(
    inbox: &Inbox,
    state: &State,
    watchers: &Arc<Watchers>,
    busy_poll: Duration,
) -> io::Result<()> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &inbox.wake, EventData::new_u64(WAKE), EventFlags::IN)?;
    let connections = Vec::new();
    let (free, buffers) = (Vec::new(), Buffers::new());
    let mut event_loop =
        EpollLoop { inbox, state, watchers, epoll, busy_poll, connections, free, buffers };
    let result = event_loop.run();
    event_loop.connections.iter().flatten().for_each(|open| open.stream.shutdown());
    result
}

struct Connection {
    stream: Stream,
    guard: ConnectionGuard,
    session: Session,
    /// The arrived part of a request that is not complete, or that waits until replies are sent.
    input: InputBuffer,
    /// Replies that the socket did not take.
    out: Vec<u8>,
    written: usize,
    closing: bool,
    /// It waits until the socket is writable: the peer does not read, or other connections come first after
    /// a long reply.
    blocked: bool,
}

/// Buffers that the connections of a loop share, as it serves one at a time.
struct Buffers {
    reads: ReadBuffers,
    /// Empty between two connections.
    out: Vec<u8>,
}

impl Buffers {
    fn new() -> Buffers {
        Buffers { reads: ReadBuffers::new(), out: Vec::new() }
    }
}

struct EpollLoop<'a> {
    inbox: &'a Inbox,
    state: &'a State,
    watchers: &'a Arc<Watchers>,
    epoll: OwnedFd,
    busy_poll: Duration,
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    buffers: Buffers,
}

impl EpollLoop<'_> {
    fn run(&mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_AT_ONCE);
        while !self.inbox.stopped() {
            self.wait(&mut events)?;
            for event in &events {
                match event.data.u64() {
                    WAKE => self.add_arrivals(),
                    number => self.serve_ready(number as usize),
                }
            }
        }
        Ok(())
    }

    /// Wait for events. There are none if a signal interrupted the wait.
    fn wait(&self, events: &mut Vec<Event>) -> io::Result<()> {
        if self.busy_poll > Duration::ZERO && self.poll_busily(events)? {
            return Ok(());
        }
        self.poll(events, None)?;
        Ok(())
    }

    fn poll(&self, events: &mut Vec<Event>, timeout: Option<&Timespec>) -> io::Result<usize> {
        events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), timeout) {
            Ok(count) => Ok(count),
            Err(rustix::io::Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Poll for a while. Returns whether there are events. Counts the CPU time of the polls that found none.
    fn poll_busily(&self, events: &mut Vec<Event>) -> io::Result<bool> {
        if self.poll(events, Some(&NO_WAIT))? > 0 {
            return Ok(true);
        }
        let (began, cpu_began, mut found, mut in_vain) = (Instant::now(), thread_cpu(), 0, 0);
        while found == 0 && began.elapsed() < self.busy_poll {
            for _ in 0..POLLS_PER_CLOCK_READ {
                found = self.poll(events, Some(&NO_WAIT))?;
                if found > 0 {
                    break;
                }
                in_vain += 1;
            }
        }
        let polls = (in_vain + u32::from(found > 0)).max(1);
        let idle = (thread_cpu() - cpu_began) / polls * in_vain;
        self.state.idle_polls_ns.fetch_add(idle.as_nanos() as u64, Ordering::Relaxed);
        Ok(found > 0)
    }

    /// Watch the connections that have arrived.
    fn add_arrivals(&mut self) {
        self.inbox.clear_wake();
        for (stream, guard) in self.inbox.take() {
            let number = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let data = EventData::new_u64(number as u64);
            let watched = stream.set_nonblocking(true).and_then(|()| {
                epoll::add(&self.epoll, &stream, data, EventFlags::IN).map_err(io::Error::from)
            });
            if watched.is_err() {
                self.free.push(number);
                continue;
            }
            self.connections[number] = Some(Box::new(Connection {
                session: Session::of(guard.socket()),
                stream,
                guard,
                input: InputBuffer::default(),
                out: Vec::new(),
                written: 0,
                closing: false,
                blocked: false,
            }));
        }
    }

    /// A session has ended, and with it the connection, unless it watches the log from now on.
    fn end(&mut self, number: usize) {
        self.free.push(number);
        let Some(mut connection) = self.connections[number].take() else { return };
        let Some(queue) = connection.session.take_watch() else {
            // Closing the socket takes it out of the epoll set.
            return;
        };
        if epoll::delete(&self.epoll, &connection.stream).is_ok() {
            let Connection { stream, guard, mut out, written, .. } = *connection;
            out.drain(..written);
            self.watchers.add(stream, guard, queue, out);
        }
    }

    /// Serve a connection whose socket is ready.
    fn serve_ready(&mut self, number: usize) {
        let Some(connection) = self.connections.get_mut(number).and_then(Option::as_mut) else {
            return;
        };
        let was_blocked = connection.blocked;
        let alive = connection.serve(self.state, &mut self.buffers);
        if !matches!(alive, Ok(true)) {
            self.end(number);
            return;
        }
        if connection.blocked != was_blocked {
            let flags = if connection.blocked { EventFlags::OUT } else { EventFlags::IN };
            let data = EventData::new_u64(number as u64);
            if epoll::modify(&self.epoll, &connection.stream, data, flags).is_err() {
                self.connections[number] = None;
                self.free.push(number);
            }
        }
    }
}

impl Connection {
    /// Serve as far as the socket allows. False if the connection has ended.
    fn serve(&mut self, state: &State, buffers: &mut Buffers) -> io::Result<bool> {
        loop {
            if !self.serve_once(state, buffers)? {
                return Ok(false);
            }
            // Bytes that TLS has decrypted already do not make the socket readable.
            if self.blocked || !self.stream.has_buffered_input() {
                return Ok(true);
            }
        }
    }

    /// Read once, carry out what arrived, and write the replies.
    fn serve_once(&mut self, state: &State, buffers: &mut Buffers) -> io::Result<bool> {
        let now_s = state.now_s();
        let mut read = 0;
        if self.blocked {
            self.blocked = !self.flush(state)?;
        } else {
            match reading::read(
                &mut self.stream,
                &mut self.session,
                &mut self.input,
                &mut buffers.reads,
            ) {
                Ok(Received { bytes: 0, .. }) => {
                    self.guard.client_ended();
                    self.stream.send_close_notify();
                    return Ok(false);
                }
                Ok(Received { bytes, shared }) => {
                    self.guard.received(bytes, now_s);
                    read = shared;
                }
                Err(error) if is_transient(&error) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        if !self.blocked && !self.closing && self.input.may_be_complete() {
            let paused = self.carry_out(read, state, now_s, buffers);
            if self.closing && self.session.watches() {
                return Ok(false);
            }
            self.blocked = !self.flush(state)? || paused;
            if self.out.is_empty() {
                buffers.out = std::mem::take(&mut self.out);
            }
        }
        if self.closing && !self.blocked {
            if self.session.has_quit() {
                self.guard.client_ended();
            }
            self.stream.send_close_notify();
            self.stream.shutdown();
            return Ok(false);
        }
        Ok(true)
    }

    /// Carry out what was read into the shared buffer, or what this connection keeps. Returns whether the session
    /// paused.
    fn carry_out(&mut self, read: usize, state: &State, now_s: u32, buffers: &mut Buffers) -> bool {
        // There are no replies left.
        self.out = std::mem::take(&mut buffers.out);
        let input = if read > 0 { &buffers.reads.shared()[..read] } else { self.input.pending() };
        let direct = self.stream.plain_socket().map(DirectSend::to);
        let fed = self.session.feed_from(input, state, now_s, &mut self.out, direct);
        if read > 0 {
            self.input.keep(fed.consumed, read, fed.whole, &mut buffers.reads);
        } else {
            self.input.consume(fed.consumed, fed.whole, &mut buffers.reads);
        }
        if fed.sent > 0 {
            state.bytes_written.fetch_add(fed.sent as u64, Ordering::Relaxed);
        }
        self.closing = fed.close;
        self.guard.set_awaits_data(!self.input.is_empty() || self.session.is_uploading());
        fed.paused
    }

    /// Write the replies. False if the socket's buffer is full.
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
            Err(error) if is_transient(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// CPU time of this thread.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
