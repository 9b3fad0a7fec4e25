//! The sockets of one thread with io_uring. The kernel writes replies into buffers that were registered
//! before. Output is submitted together with the wait for replies, so that one round of the loop takes
//! one system call, with any number of connections.

mod network;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use cachemark_uring::{BUFFER_GROUP, COMPLETIONS, ProvidedBuffers};
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::background_connect::BackgroundConnect;
use super::stream::Stream;
use super::traits::{Transport, not_connected};
use crate::io_traits::Ready;
use crate::options::{Address, ConnectionOptions};

/// A connection accepts no more output while this much is not sent.
const BACKLOG_BYTES: usize = 256 * 1024;
/// The kernel ends all requests soon after they are cancelled. This is how long one check waits.
const CANCEL_POLL: Duration = Duration::from_millis(100);

/// The lowest bits of a request's user data: its kind. Above them: the generation and the number of the
/// connection.
mod kind {
    pub const RECEIVE: u64 = 0;
    pub const SEND: u64 = 1;
    pub const OPEN: u64 = 2;
    pub const CANCEL: u64 = 3;
    pub const BITS: u32 = 2;
    pub const GENERATION_BITS: u32 = 32;
}

/// The io_uring instance of the thread that plays, and its buffers.
struct RingState {
    // Declared first, so that it is dropped before the buffers that the kernel uses.
    ring: IoUring,
    provided: ProvidedBuffers,
    /// Requests whose last completion has not arrived.
    outstanding: usize,
}

/// The unread part of a buffer with received bytes.
struct ReceivedBuffer {
    buffer: u16,
    begin: usize,
    end: usize,
}

#[derive(Default)]
struct RingConnection {
    stream: Option<Stream>,
    background: Option<BackgroundConnect<Stream>>,
    /// How often the connection was closed. Completions of an older generation are ignored.
    generation: u32,
    /// Output that follows `sending`.
    out: Vec<u8>,
    /// Output that the kernel reads: it must not change while a send is in flight.
    sending: Vec<u8>,
    sent: usize,
    in_flight: bool,
    /// A receive request is active.
    receiving: bool,
    arrived: VecDeque<ReceivedBuffer>,
    /// Why the connection ended: 0 at the end of the stream, or the number of an error.
    ended: Option<i32>,
    /// The connect has not finished.
    opening: bool,
    /// The event loop waits until the connection is writable.
    blocked: bool,
    /// Whether the connection is in the lists `to_submit` and `readable` of the ring.
    to_submit: bool,
    is_listed: bool,
}

impl RingConnection {
    fn has_input(&self) -> bool {
        !self.arrived.is_empty() || self.ended.is_some()
    }

    fn has_unsent(&self) -> bool {
        !self.out.is_empty() || self.sent < self.sending.len()
    }

    fn has_room(&self) -> bool {
        self.out.len() < BACKLOG_BYTES
    }

    /// Forget the old socket. Completions that arrive for it later have an older generation.
    fn reset(&mut self) {
        let (out, sending) = (std::mem::take(&mut self.out), std::mem::take(&mut self.sending));
        let (to_submit, is_listed) = (self.to_submit, self.is_listed);
        *self = RingConnection {
            generation: self.generation.wrapping_add(1),
            to_submit,
            is_listed,
            out,
            sending,
            ..RingConnection::default()
        };
        self.out.clear();
        self.sending.clear();
    }
}

pub struct Ring {
    state: Option<RingState>,
    connections: Vec<RingConnection>,
    ready: Vec<Ready>,
    /// Connections that need a new request, and connections with input for the event loop.
    to_submit: Vec<usize>,
    readable: Vec<usize>,
    completions: Vec<(u64, i32, u32)>,
    /// Output of closed connections that the kernel may still read, until its completion arrives.
    closed_sends: HashMap<u64, Vec<u8>>,
    /// The servers. Connection `c` goes to address `c` modulo their number.
    addresses: Vec<Address>,
    connection_options: ConnectionOptions,
    timeout: Duration,
}

impl Ring {
    /// Connect `per_address` times to each address. An error comes with the address that failed.
    pub fn connect(
        addresses: &[Address],
        connection_options: &ConnectionOptions,
        per_address: usize,
        timeout: Duration,
    ) -> Result<Ring, (Address, io::Error)> {
        let mut connections = Vec::with_capacity(per_address * addresses.len());
        for address in (0..per_address).flat_map(|_| addresses) {
            let stream = <Stream as Transport>::open(address, connection_options, timeout);
            let stream = stream.map_err(|error| (address.clone(), error))?;
            connections.push(RingConnection { stream: Some(stream), ..RingConnection::default() });
        }
        let count = connections.len();
        Ok(Ring {
            state: None,
            connections,
            ready: Vec::with_capacity(2 * count),
            to_submit: Vec::with_capacity(count),
            readable: Vec::with_capacity(count),
            completions: Vec::with_capacity(COMPLETIONS as usize),
            closed_sends: HashMap::new(),
            addresses: addresses.to_vec(),
            connection_options: connection_options.clone(),
            timeout,
        })
    }

    #[inline]
    fn queue_submit(&mut self, c: usize) {
        if !std::mem::replace(&mut self.connections[c].to_submit, true) {
            self.to_submit.push(c);
        }
    }

    #[inline]
    fn list_readable(&mut self, c: usize) {
        if !std::mem::replace(&mut self.connections[c].is_listed, true) {
            self.readable.push(c);
        }
    }

    fn data(&self, c: usize, kind: u64) -> u64 {
        let generation = u64::from(self.connections[c].generation);
        ((c as u64) << kind::GENERATION_BITS | generation) << kind::BITS | kind
    }

    #[inline]
    fn submit(&mut self, entry: squeue::Entry, data: u64) -> io::Result<()> {
        let Some(state) = &mut self.state else { return Err(not_connected()) };
        let entry = entry.user_data(data);
        loop {
            // SAFETY: the entry points to the `sending` buffer of a connection, which stays unchanged
            // until the completion arrives: `close` moves it to `closed_sends`, and `detach_thread`
            // waits for the kernel.
            if unsafe { state.ring.submission().push(&entry) }.is_ok() {
                state.outstanding += 1;
                return Ok(());
            }
            state.ring.submit()?;
        }
    }

    /// Create the requests that connections need: receives and sends.
    fn submit_queued(&mut self) -> io::Result<()> {
        while let Some(c) = self.to_submit.pop() {
            let connection = &mut self.connections[c];
            connection.to_submit = false;
            let Some(stream) = connection.stream.as_ref() else { continue };
            if connection.ended.is_some() || connection.opening {
                continue;
            }
            let socket = Fd(stream.as_fd().as_raw_fd());
            let listens = std::mem::replace(&mut connection.receiving, true);
            let sends = connection.has_unsent() && !connection.in_flight;
            if sends {
                if connection.sent == connection.sending.len() {
                    connection.sending.clear();
                    connection.sent = 0;
                    std::mem::swap(&mut connection.sending, &mut connection.out);
                }
                connection.in_flight = true;
            }
            let rest = &connection.sending[connection.sent..];
            let send = opcode::Send::new(socket, rest.as_ptr(), rest.len() as u32);
            if !listens {
                let entry = opcode::RecvMulti::new(socket, BUFFER_GROUP).build();
                self.submit(entry, self.data(c, kind::RECEIVE))?;
            }
            if sends {
                let entry = send.flags(libc::MSG_NOSIGNAL).build();
                self.submit(entry, self.data(c, kind::SEND))?;
            }
        }
        Ok(())
    }

    /// Submit the requests, wait up to `max_ns`, and handle the completions.
    fn wait_for_completions(&mut self, max_ns: u64) -> io::Result<()> {
        let Some(state) = &mut self.state else { return Err(not_connected()) };
        let longest = Timespec::from(Duration::from_nanos(max_ns));
        let arguments = SubmitArgs::new().timespec(&longest);
        match state.ring.submitter().submit_with_args(1, &arguments) {
            Ok(_) => {}
            // EBUSY: completions have to be handled first.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)
                ) => {}
            Err(error) => return Err(error),
        }
        let done = state.ring.completion();
        self.completions
            .extend(done.map(|entry| (entry.user_data(), entry.result(), entry.flags())));
        let mut completions = std::mem::take(&mut self.completions);
        for (data, result, flags) in completions.drain(..) {
            self.handle_completion(data, result, flags);
        }
        self.completions = completions;
        Ok(())
    }

    #[inline]
    fn handle_completion(&mut self, data: u64, result: i32, flags: u32) {
        let Some(state) = &mut self.state else { return };
        state.outstanding -= usize::from(!cqueue::more(flags));
        let c = (data >> (kind::GENERATION_BITS + kind::BITS)) as usize;
        let generation = (data >> kind::BITS) as u32;
        let of = data & ((1 << kind::BITS) - 1);
        if of == kind::CANCEL || self.connections[c].generation != generation {
            self.closed_sends.remove(&data);
            if let Some(buffer) = cqueue::buffer_select(flags) {
                state.provided.release(buffer);
            }
            return;
        }
        match of {
            kind::RECEIVE => self.received(c, result, flags),
            kind::SEND => self.sent(c, result),
            _ => self.ready.push(Ready { connection: c, writable: true }),
        }
    }

    #[inline]
    fn received(&mut self, c: usize, result: i32, flags: u32) {
        let Some(state) = &mut self.state else { return };
        let connection = &mut self.connections[c];
        connection.receiving &= cqueue::more(flags);
        if let Some(buffer) = cqueue::buffer_select(flags) {
            if result > 0 {
                connection.arrived.push_back(ReceivedBuffer {
                    buffer,
                    begin: 0,
                    end: result as usize,
                });
            } else {
                state.provided.release(buffer);
            }
        }
        // After these errors the receive request only has to be repeated.
        let repeatable = [-libc::ENOBUFS, -libc::ECANCELED, -libc::EINTR, -libc::EAGAIN];
        if result <= 0 && !repeatable.contains(&result) {
            connection.ended = connection.ended.or(Some(-result));
        }
        if !self.connections[c].receiving {
            self.queue_submit(c);
        }
        if self.connections[c].has_input() {
            self.list_readable(c);
        }
    }

    fn sent(&mut self, c: usize, result: i32) {
        let connection = &mut self.connections[c];
        connection.in_flight = false;
        match -result {
            bytes if bytes <= 0 => connection.sent += result as usize,
            libc::EINTR | libc::EAGAIN | libc::ECANCELED => {}
            error => connection.ended = connection.ended.or(Some(error)),
        }
        if connection.blocked && connection.has_room() {
            self.ready.push(Ready { connection: c, writable: true });
        }
        if self.connections[c].has_unsent() {
            self.queue_submit(c);
        }
        if self.connections[c].ended.is_some() {
            self.list_readable(c);
        }
    }

    fn outstanding(&self) -> usize {
        self.state.as_ref().map_or(0, |state| state.outstanding)
    }

    /// Cancel all requests and wait for them: the ring does not outlive the thread that made it.
    fn cancel_all(&mut self) -> io::Result<()> {
        let mut goes_on = false;
        while self.outstanding() > 0 {
            if !goes_on {
                let everything = CancelBuilder::any().all();
                self.submit(opcode::AsyncCancel2::new(everything).build(), kind::CANCEL)?;
            }
            let before = self.outstanding();
            self.wait_for_completions(CANCEL_POLL.as_nanos() as u64)?;
            goes_on = self.outstanding() < before;
        }
        Ok(())
    }
}
