//! io_uring: each thread serves many connections from one ring. A receipt that is asked for once
//! completes many times, into buffers that are handed to the kernel beforehand; a turn's requests
//! and the wait for completions are one system call.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cachemark_uring::{COMPLETIONS, GROUP, Provided};
use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::guest::Guest;
use crate::inbox::Inbox;
use crate::session::Session;
use crate::state::{State, now_s};
use crate::stream::{Input, Stream};

/// So much that is not sent yet, or not carried out, and the connection is not listened to.
const BACKLOG_BYTES: usize = 256 * 1024;

/// What a completion is of; the connection's number stands above it.
mod kind {
    pub const WAKE: u64 = 0;
    pub const RECEIVE: u64 = 1;
    pub const SEND: u64 = 2;
    pub const CANCEL: u64 = 3;
    pub const BITS: u32 = 2;
}

/// Serve until the inbox says stop.
pub fn run(inbox: &Arc<Inbox>, state: &Arc<State>) -> io::Result<()> {
    let ring = cachemark_uring::ring()?;
    let provided = Provided::register(&ring.submitter())?;
    let mut body = Ring {
        ring,
        provided,
        state,
        conversations: Vec::new(),
        free: Vec::new(),
        completed: Vec::with_capacity(COMPLETIONS as usize),
    };
    body.serve(inbox)
}

struct Conversation {
    stream: Stream,
    guest: Guest,
    session: Session,
    input: Input,
    /// Replies that wait until what is being sent is sent.
    out: Vec<u8>,
    /// What the kernel reads; not touched while a send is under way.
    sending: Vec<u8>,
    sent: usize,
    in_flight: bool,
    /// A receipt is asked for, and has not ended.
    listening: bool,
    cancelling: bool,
    /// More of the input can be carried out once replies are sent.
    paused: bool,
    /// To be closed once the replies are sent.
    closing: bool,
    /// The peer has ended its side; what it asked for is still answered.
    ended: bool,
    /// The peer is gone: nothing more is sent or carried out.
    gone: bool,
}

impl Conversation {
    fn new(stream: Stream, guest: Guest) -> Conversation {
        Conversation {
            stream,
            guest,
            session: Session::default(),
            input: Input::new(),
            out: Vec::with_capacity(4096),
            sending: Vec::with_capacity(4096),
            sent: 0,
            in_flight: false,
            listening: false,
            cancelling: false,
            paused: false,
            closing: false,
            ended: false,
            gone: false,
        }
    }

    /// Whether to stop listening until replies are sent.
    fn is_full(&self) -> bool {
        self.paused || (self.in_flight && self.out.len() > BACKLOG_BYTES)
    }

    fn carry_out(&mut self, state: &State) {
        if self.gone || self.closing {
            return;
        }
        let fed = self.session.feed(self.input.pending(), state, now_s(), &mut self.out);
        self.input.consume(fed.consumed);
        self.closing = fed.close;
        self.paused = fed.paused;
    }

    /// Carry out what came; straight from the kernel's buffer where nothing waits before it.
    fn receive(&mut self, bytes: &[u8], state: &State) {
        self.guest.heard(bytes.len(), now_s());
        if self.gone || self.closing {
            return;
        }
        if self.paused || !self.input.pending().is_empty() {
            self.input.extend(bytes);
            if !self.paused {
                self.carry_out(state);
            }
            return;
        }
        let fed = self.session.feed(bytes, state, now_s(), &mut self.out);
        self.closing = fed.close;
        self.paused = fed.paused;
        self.input.extend(&bytes[fed.consumed..]);
    }
}

struct Ring<'a> {
    // Dropped before the buffers that the kernel knows.
    ring: IoUring,
    provided: Provided,
    state: &'a State,
    conversations: Vec<Option<Box<Conversation>>>,
    free: Vec<usize>,
    completed: Vec<(u64, i32, u32)>,
}

impl Ring<'_> {
    fn serve(&mut self, inbox: &Inbox) -> io::Result<()> {
        self.watch(inbox)?;
        while !inbox.stopped() {
            self.turn(inbox)?;
        }
        // Wait until the kernel has done with the connections' memory.
        for number in 0..self.conversations.len() {
            if let Some(conversation) = &mut self.conversations[number] {
                conversation.gone = true;
                self.settle(number)?;
            }
        }
        while self.conversations.iter().any(Option::is_some) {
            self.turn(inbox)?;
        }
        Ok(())
    }

    fn turn(&mut self, inbox: &Inbox) -> io::Result<()> {
        self.wait()?;
        let mut completed = std::mem::take(&mut self.completed);
        for (data, result, flags) in completed.drain(..) {
            let number = (data >> kind::BITS) as usize;
            match data & ((1 << kind::BITS) - 1) {
                kind::WAKE => self.woken(inbox, flags)?,
                kind::RECEIVE => self.received(number, result, flags)?,
                kind::SEND => self.sent(number, result)?,
                _ => self.cancelled(number)?,
            }
        }
        self.completed = completed;
        Ok(())
    }

    fn woken(&mut self, inbox: &Inbox, flags: u32) -> io::Result<()> {
        inbox.calm();
        if !inbox.stopped() {
            self.welcome(inbox)?;
            if !cqueue::more(flags) {
                self.watch(inbox)?;
            }
        }
        Ok(())
    }

    fn cancelled(&mut self, number: usize) -> io::Result<()> {
        if let Some(conversation) = &mut self.conversations[number] {
            conversation.cancelling = false;
        }
        self.settle(number)
    }

    /// Hand over what is asked for, and take what is done.
    fn wait(&mut self) -> io::Result<()> {
        match self.ring.submit_and_wait(1) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Completions are to be taken first.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => return Err(error),
        }
        let done = self.ring.completion();
        self.completed.extend(done.map(|entry| (entry.user_data(), entry.result(), entry.flags())));
        Ok(())
    }

    fn ask(&mut self, entry: squeue::Entry, number: usize, kind: u64) -> io::Result<()> {
        let entry = entry.user_data((number as u64) << kind::BITS | kind);
        loop {
            // SAFETY: what an entry points to is the connection's own, boxed, and kept until the
            // completion has come: `settle` frees no connection before.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                return Ok(());
            }
            self.ring.submit()?;
        }
    }

    fn watch(&mut self, inbox: &Inbox) -> io::Result<()> {
        let socket = Fd(inbox.wake.as_fd().as_raw_fd());
        let entry = opcode::PollAdd::new(socket, libc::POLLIN as u32).multi(true).build();
        self.ask(entry, 0, kind::WAKE)
    }

    fn welcome(&mut self, inbox: &Inbox) -> io::Result<()> {
        for (stream, guest) in inbox.take() {
            let number = self.free.pop().unwrap_or_else(|| {
                self.conversations.push(None);
                self.conversations.len() - 1
            });
            self.conversations[number] = Some(Box::new(Conversation::new(stream, guest)));
            self.settle(number)?;
        }
        Ok(())
    }

    fn received(&mut self, number: usize, result: i32, flags: u32) -> io::Result<()> {
        let Some(conversation) = &mut self.conversations[number] else { return Ok(()) };
        if let Some(buffer) = cqueue::buffer_select(flags) {
            if result > 0 {
                let bytes = self.provided.filled(buffer, result as usize);
                conversation.receive(bytes, self.state);
            }
            self.provided.give(buffer);
        }
        conversation.listening &= cqueue::more(flags);
        // Of the errors, two say only that the receipt has to be asked for again.
        let passing = [-libc::ENOBUFS, -libc::ECANCELED, -libc::EINTR, -libc::EAGAIN];
        if result <= 0 && !passing.contains(&result) {
            conversation.gone |= result < 0;
            conversation.ended = true;
        }
        self.settle(number)
    }

    fn sent(&mut self, number: usize, result: i32) -> io::Result<()> {
        let Some(conversation) = &mut self.conversations[number] else { return Ok(()) };
        conversation.in_flight = false;
        match result {
            1.. => {
                conversation.sent += result as usize;
                self.state.bytes_written.fetch_add(result as u64, Ordering::Relaxed);
            }
            error if error == -libc::EINTR || error == -libc::EAGAIN => {}
            _ => conversation.gone = true,
        }
        self.settle(number)
    }

    /// Do what a connection's state asks for: send, carry out what waited, listen or not, end.
    fn settle(&mut self, number: usize) -> io::Result<()> {
        let Some(conversation) = &mut self.conversations[number] else { return Ok(()) };
        if !conversation.in_flight && !conversation.gone {
            if conversation.sent == conversation.sending.len() {
                conversation.sending.clear();
                conversation.sending.shrink_to(1 << 20);
                conversation.sent = 0;
                if conversation.paused && conversation.out.is_empty() {
                    conversation.carry_out(self.state);
                }
                std::mem::swap(&mut conversation.sending, &mut conversation.out);
            }
            if !conversation.sending.is_empty() {
                return self.send(number);
            }
        }
        self.listen_or_end(number)
    }

    fn send(&mut self, number: usize) -> io::Result<()> {
        let Some(conversation) = &mut self.conversations[number] else { return Ok(()) };
        let rest = &conversation.sending[conversation.sent..];
        let socket = Fd(conversation.stream.as_fd().as_raw_fd());
        let entry = opcode::Send::new(socket, rest.as_ptr(), rest.len() as u32)
            .flags(libc::MSG_NOSIGNAL)
            .build();
        conversation.in_flight = true;
        self.ask(entry, number, kind::SEND)?;
        self.listen_or_end(number)
    }

    fn listen_or_end(&mut self, number: usize) -> io::Result<()> {
        let Some(conversation) = &mut self.conversations[number] else { return Ok(()) };
        let socket = Fd(conversation.stream.as_fd().as_raw_fd());
        let answered = !conversation.in_flight && !conversation.paused;
        let over = conversation.gone
            || (conversation.closing && !conversation.in_flight)
            || (conversation.ended && answered);
        if over {
            // Ends a receipt that is under way.
            conversation.stream.shutdown();
            if !conversation.in_flight && !conversation.listening && !conversation.cancelling {
                self.conversations[number] = None;
                self.free.push(number);
            }
            return Ok(());
        }
        let wants = !conversation.is_full() && !conversation.closing && !conversation.ended;
        if wants && !conversation.listening {
            conversation.listening = true;
            let entry = opcode::RecvMulti::new(socket, GROUP).build();
            return self.ask(entry, number, kind::RECEIVE);
        }
        if conversation.is_full() && conversation.listening && !conversation.cancelling {
            conversation.cancelling = true;
            let target = (number as u64) << kind::BITS | kind::RECEIVE;
            return self.ask(opcode::AsyncCancel::new(target).build(), number, kind::CANCEL);
        }
        Ok(())
    }
}
