//! A connection of an event loop on io_uring: what arrived, what is sent, and what the kernel still does with it.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering;

use cachemark_uring::BUFFER_GROUP;
use io_uring::types::Fd;
use io_uring::{opcode, squeue};

use crate::connection::direct_send::DirectSend;
use crate::connection::guard::ConnectionGuard;
use crate::connection::input_buffer::{InputBuffer, ReadBuffers};
use crate::connection::stream::Stream;
use crate::session::{Fed, Session};
use crate::state::server_state::State;
use crate::transports::uring_value::ValueReceive;

/// With more unsent bytes than this, nothing is received from the connection.
const BACKLOG_BYTES: usize = 256 * 1024;
/// After a long value, this number of receives fill one buffer each. Another long value may follow: its bytes must not
/// go to buffers meanwhile, as the bytes of a receive that completes many times do.
const SINGLE_RECEIVES: u8 = 16;
/// A shorter rest of a long value comes with what follows it.
const VALUE_BYTES_MIN: usize = 4 * 1024;

pub struct Connection {
    pub stream: Stream,
    pub guard: ConnectionGuard,
    pub session: Session,
    pub input: InputBuffer,
    /// Replies that wait until the present send has ended.
    pub out: Vec<u8>,
    /// The bytes that the kernel sends. Not changed while a send is in flight.
    pub sending: Vec<u8>,
    pub sent: usize,
    pub in_flight: bool,
    /// A receive is in flight.
    pub receiving: bool,
    /// It fills the item of a long value.
    into_value: bool,
    value: Option<Box<ValueReceive>>,
    /// How many of the next receives fill one buffer.
    single_receives: u8,
    pub cancelling: bool,
    /// The rest of the input is carried out once the replies are sent.
    pub paused: bool,
    /// The connection is closed once the replies are sent.
    pub closing: bool,
    /// The peer has ended its side; its requests are still answered.
    pub ended: bool,
    /// The peer is gone: nothing is sent or carried out any more.
    pub gone: bool,
}

impl Connection {
    pub fn new(stream: Stream, guard: ConnectionGuard) -> Connection {
        Connection {
            session: Session::of(guard.socket()),
            stream,
            guard,
            input: InputBuffer::default(),
            out: Vec::new(),
            sending: Vec::new(),
            sent: 0,
            in_flight: false,
            receiving: false,
            into_value: false,
            value: None,
            single_receives: 0,
            cancelling: false,
            paused: false,
            closing: false,
            ended: false,
            gone: false,
        }
    }

    /// Whether to receive nothing until replies are sent.
    pub fn is_full(&self) -> bool {
        self.paused || (self.in_flight && self.out.len() > BACKLOG_BYTES)
    }

    /// Whether a long value arrives, and what is in flight would not bring it to its item.
    pub fn misses_value(&mut self) -> bool {
        self.receiving && !self.into_value && self.awaits_value()
    }

    fn awaits_value(&mut self) -> bool {
        let missing = self.session.upload_space().map_or(0, |space| space.len());
        missing >= VALUE_BYTES_MIN && self.input.is_empty()
    }

    /// Begin a receive: into the item of a long value, else into buffers of the kernel's choice.
    pub fn begin_receive(&mut self) -> squeue::Entry {
        let socket = Fd(self.stream.as_fd().as_raw_fd());
        self.receiving = true;
        if self.awaits_value() {
            self.into_value = true;
            self.single_receives = SINGLE_RECEIVES;
            let end_bytes = self.session.upload_end_bytes();
            let value = self.session.upload_space().unwrap_or_default();
            return self.value.get_or_insert_default().begin(socket, value, end_bytes);
        }
        if self.single_receives == 0 {
            return opcode::RecvMulti::new(socket, BUFFER_GROUP).build();
        }
        self.single_receives -= 1;
        cachemark_uring::receive_once(socket)
    }

    /// Note that the receive has ended.
    pub fn end_receive(&mut self) {
        self.receiving = false;
        self.into_value = false;
    }

    /// Record received bytes of a long value and of its end.
    pub fn receive_value(&mut self, bytes: usize, state: &State, buffers: &mut ReadBuffers) {
        let missing = self.session.upload_space().map_or(0, |space| space.len());
        self.session.uploaded(bytes.min(missing));
        let end = self.value.as_ref().map_or([0; 2], |value| value.end);
        self.receive(&end[..bytes.saturating_sub(missing)], bytes, state, buffers);
    }

    /// Carry out the input that waits.
    pub fn carry_out(&mut self, state: &State, buffers: &mut ReadBuffers) {
        self.paused = false;
        if self.gone || self.closing || !self.input.may_be_complete() {
            return;
        }
        buffers.lend_replies(&mut self.out);
        let socket = self.is_free().then(|| self.stream.plain_socket()).flatten();
        let (input, out) = (self.input.pending(), &mut self.out);
        let direct = socket.map(DirectSend::to);
        let fed = self.session.feed_from(input, state, state.now_s(), out, direct);
        self.input.consume(fed.consumed, fed.whole, buffers);
        self.note(fed, state, buffers);
    }

    /// Carry out what arrived, directly from the kernel's buffer if no input waits before it. `received` is the number
    /// of bytes in all.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        received: usize,
        state: &State,
        buffers: &mut ReadBuffers,
    ) {
        let now_s = state.now_s();
        self.guard.received(received, now_s);
        if self.gone || self.closing {
            return;
        }
        if self.is_full() || !self.input.is_empty() {
            self.input.extend(bytes, buffers);
            // Requests that the kernel received before the cancel are carried out once the replies are sent.
            self.paused = self.is_full();
            if !self.paused {
                self.carry_out(state, buffers);
            }
            return;
        }
        buffers.lend_replies(&mut self.out);
        let socket = self.is_free().then(|| self.stream.plain_socket()).flatten();
        let direct = socket.map(DirectSend::to);
        let fed = self.session.feed_from(bytes, state, now_s, &mut self.out, direct);
        if fed.consumed < bytes.len() {
            self.input.expect(fed.whole);
            self.input.extend(&bytes[fed.consumed..], buffers);
        }
        self.note(fed, state, buffers);
    }

    /// Whether all replies so far are sent.
    fn is_free(&self) -> bool {
        !self.in_flight && self.sending.is_empty() && self.out.is_empty()
    }

    /// Note what the session did.
    fn note(&mut self, fed: Fed, state: &State, buffers: &mut ReadBuffers) {
        if self.out.is_empty() {
            buffers.return_replies(&mut self.out);
        }
        if fed.sent > 0 {
            state.bytes_written.fetch_add(fed.sent as u64, Ordering::Relaxed);
        }
        self.closing = fed.close;
        self.paused = fed.paused;
        self.guard.set_awaits_data(!self.input.is_empty() || self.session.is_uploading());
        if fed.close && self.session.has_quit() {
            self.guard.client_ended();
        }
    }
}
