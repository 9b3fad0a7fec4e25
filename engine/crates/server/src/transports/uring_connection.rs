//! A connection of an event loop on io_uring: what arrived, what is sent, and what the kernel still does with it.

use std::sync::atomic::Ordering;

use crate::connection::direct_send::DirectSend;
use crate::connection::guard::ConnectionGuard;
use crate::connection::input_buffer::{InputBuffer, ReadBuffers};
use crate::connection::stream::Stream;
use crate::session::{Fed, Session};
use crate::state::server_state::State;

/// With more unsent bytes than this, nothing is received from the connection.
const BACKLOG_BYTES: usize = 256 * 1024;

pub struct Connection {
    pub stream: Stream,
    pub guard: ConnectionGuard,
    pub session: Session,
    pub input: InputBuffer,
    /// Replies that wait until the present send has ended.
    pub out: Vec<u8>,
    /// What the kernel sends. Not changed while a send is in flight.
    pub sending: Vec<u8>,
    pub sent: usize,
    pub in_flight: bool,
    /// A receive is in flight.
    pub receiving: bool,
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

    /// Carry out the input that waits.
    pub fn carry_out(&mut self, state: &State, buffers: &mut ReadBuffers) {
        if self.gone || self.closing || !self.input.may_be_complete() {
            return;
        }
        let socket = self.is_free().then(|| self.stream.plain_socket()).flatten();
        let (input, out) = (self.input.pending(), &mut self.out);
        let direct = socket.map(DirectSend::to);
        let fed = self.session.feed_from(input, state, state.now_s(), out, direct);
        self.input.consume(fed.consumed, fed.whole, buffers);
        self.note(fed, state);
    }

    /// Carry out what arrived, directly from the kernel's buffer if no input waits before it.
    pub fn receive(&mut self, bytes: &[u8], state: &State, buffers: &mut ReadBuffers) {
        let now_s = state.now_s();
        self.guard.received(bytes.len(), now_s);
        if self.gone || self.closing {
            return;
        }
        if self.is_full() || !self.input.is_empty() {
            self.input.extend(bytes, buffers);
            // What the kernel received before the receive was cancelled is carried out once the replies are sent.
            self.paused = self.is_full();
            if !self.paused {
                self.carry_out(state, buffers);
            }
            return;
        }
        let socket = self.is_free().then(|| self.stream.plain_socket()).flatten();
        let direct = socket.map(DirectSend::to);
        let fed = self.session.feed_from(bytes, state, now_s, &mut self.out, direct);
        if fed.consumed < bytes.len() {
            self.input.expect(fed.whole);
            self.input.extend(&bytes[fed.consumed..], buffers);
        }
        self.note(fed, state);
    }

    /// Whether all replies so far are sent.
    fn is_free(&self) -> bool {
        !self.in_flight && self.sending.is_empty() && self.out.is_empty()
    }

    /// Note what the session did.
    fn note(&mut self, fed: Fed, state: &State) {
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
