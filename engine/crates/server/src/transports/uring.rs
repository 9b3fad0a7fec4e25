//! Event loops on io_uring: each thread serves many connections. A multishot receive completes many times,
//! into buffers that were given to the kernel before. One system call submits a round's requests and waits
//! for completions.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cachemark_uring::{COMPLETIONS, ProvidedBuffers};
use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::connection::input_buffer::ReadBuffers;
use crate::state::server_state::State;
use crate::transports::inbox::Inbox;
use crate::transports::uring_connection::Connection;
use crate::transports::watchers::Watchers;

/// The kind of a completion, in the lowest bits of its user data. The connection's number is above them.
mod kind {
    pub const WAKE: u64 = 0;
    pub const RECEIVE: u64 = 1;
    pub const SEND: u64 = 2;
    pub const CANCEL: u64 = 3;
    pub const BITS: u32 = 2;
}

/// The kernel gets this number of buffers, and as many more whenever it has none left.
const BUFFERS_AT_ONCE: u16 = 32;

/// Serve until the inbox orders to stop.
pub fn run(inbox: &Arc<Inbox>, state: &Arc<State>, watchers: &Arc<Watchers>) -> io::Result<()> {
    let ring = cachemark_uring::ring()?;
    let provided = ProvidedBuffers::register(&ring.submitter(), BUFFERS_AT_ONCE)?;
    let mut event_loop = UringLoop {
        ring,
        provided,
        state,
        watchers,
        connections: Vec::new(),
        free: Vec::new(),
        completed: Vec::with_capacity(COMPLETIONS as usize),
        buffers: ReadBuffers::new(),
    };
    event_loop.serve(inbox)
}

struct UringLoop<'a> {
    // Dropped before the buffers, which the kernel uses.
    ring: IoUring,
    provided: ProvidedBuffers,
    state: &'a State,
    watchers: &'a Arc<Watchers>,
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    completed: Vec<(u64, i32, u32)>,
    buffers: ReadBuffers,
}

impl UringLoop<'_> {
    fn serve(&mut self, inbox: &Inbox) -> io::Result<()> {
        self.watch_inbox(inbox)?;
        while !inbox.stopped() {
            self.run_once(inbox)?;
        }
        // Wait until the kernel does not use the connections' memory any more.
        for number in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[number] {
                connection.gone = true;
                self.advance(number)?;
            }
        }
        while self.connections.iter().any(Option::is_some) {
            self.run_once(inbox)?;
        }
        Ok(())
    }

    /// Wait for completions and handle them.
    fn run_once(&mut self, inbox: &Inbox) -> io::Result<()> {
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
        inbox.clear_wake();
        if !inbox.stopped() {
            self.add_arrivals(inbox)?;
            if !cqueue::more(flags) {
                self.watch_inbox(inbox)?;
            }
        }
        Ok(())
    }

    fn cancelled(&mut self, number: usize) -> io::Result<()> {
        if let Some(connection) = &mut self.connections[number] {
            connection.cancelling = false;
        }
        self.advance(number)
    }

    /// Submit the requests and collect the completions.
    fn wait(&mut self) -> io::Result<()> {
        match self.ring.submit_and_wait(1) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The kernel wants completions to be collected first.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => return Err(error),
        }
        let done = self.ring.completion();
        self.completed.extend(done.map(|entry| (entry.user_data(), entry.result(), entry.flags())));
        Ok(())
    }

    /// Queue a request of a connection.
    fn submit(&mut self, entry: squeue::Entry, number: usize, kind: u64) -> io::Result<()> {
        let entry = entry.user_data((number as u64) << kind::BITS | kind);
        loop {
            // SAFETY: what an entry points to belongs to the boxed connection, which is kept until the
            // completion has arrived: `advance` does not free it before.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                return Ok(());
            }
            self.ring.submit()?;
        }
    }

    /// Poll the inbox's eventfd.
    fn watch_inbox(&mut self, inbox: &Inbox) -> io::Result<()> {
        let socket = Fd(inbox.wake.as_fd().as_raw_fd());
        let entry = opcode::PollAdd::new(socket, libc::POLLIN as u32).multi(true).build();
        self.submit(entry, 0, kind::WAKE)
    }

    /// Serve the connections that have arrived.
    fn add_arrivals(&mut self, inbox: &Inbox) -> io::Result<()> {
        for (stream, guard) in inbox.take() {
            let number = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            self.connections[number] = Some(Box::new(Connection::new(stream, guard)));
            self.advance(number)?;
        }
        Ok(())
    }

    fn received(&mut self, number: usize, result: i32, flags: u32) -> io::Result<()> {
        let Some(connection) = &mut self.connections[number] else { return Ok(()) };
        if !cqueue::more(flags) {
            connection.end_receive();
        }
        if let Some(buffer) = cqueue::buffer_select(flags) {
            if result > 0 {
                let bytes = self.provided.received(buffer, result as usize);
                connection.receive(bytes, bytes.len(), self.state, &mut self.buffers);
            }
            self.provided.release(buffer);
        } else if result > 0 {
            connection.receive_value(result as usize, self.state, &mut self.buffers);
        }
        if result == -libc::ENOBUFS {
            self.provided.give(BUFFERS_AT_ONCE);
        }
        // After these errors the receive is only submitted again.
        let transient = [-libc::ENOBUFS, -libc::ECANCELED, -libc::EINTR, -libc::EAGAIN];
        if result <= 0 && !transient.contains(&result) {
            // The server's own shutdown ends the receive in the same way.
            if result == 0 && !connection.closing {
                connection.guard.client_ended();
            }
            connection.gone |= result < 0;
            connection.ended = true;
        }
        self.advance(number)
    }

    fn sent(&mut self, number: usize, result: i32) -> io::Result<()> {
        let Some(connection) = &mut self.connections[number] else { return Ok(()) };
        connection.in_flight = false;
        match result {
            1.. => {
                connection.sent += result as usize;
                self.state.bytes_written.fetch_add(result as u64, Ordering::Relaxed);
            }
            error if error == -libc::EINTR || error == -libc::EAGAIN => {}
            _ => connection.gone = true,
        }
        self.advance(number)
    }

    /// Do what a connection's state requires: send, carry out input that waits, receive or not, or end.
    fn advance(&mut self, number: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[number] else { return Ok(()) };
        if !connection.in_flight && !connection.gone {
            if connection.sent == connection.sending.len() {
                self.buffers.return_replies(&mut connection.sending);
                connection.sent = 0;
                // Replies that were sent at once, or no replies, leave no send that would continue this.
                while connection.paused && connection.out.is_empty() {
                    connection.carry_out(self.state, &mut self.buffers);
                }
                std::mem::swap(&mut connection.sending, &mut connection.out);
            }
            if !connection.sending.is_empty() {
                return self.send(number);
            }
        }
        self.receive_or_end(number)
    }

    fn send(&mut self, number: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[number] else { return Ok(()) };
        let rest = &connection.sending[connection.sent..];
        let socket = Fd(connection.stream.as_fd().as_raw_fd());
        let entry = opcode::Send::new(socket, rest.as_ptr(), rest.len() as u32)
            .flags(libc::MSG_NOSIGNAL)
            .build();
        connection.in_flight = true;
        self.submit(entry, number, kind::SEND)?;
        self.receive_or_end(number)
    }

    fn receive_or_end(&mut self, number: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[number] else { return Ok(()) };
        let answered = !connection.in_flight && !connection.paused;
        let ended = connection.gone
            || (connection.closing && !connection.in_flight)
            || (connection.ended && answered);
        let hands_over = connection.closing && connection.session.watches() && !connection.gone;
        if hands_over && !connection.in_flight {
            return self.hand_over(number);
        }
        if ended {
            // This ends a receive that is in flight.
            connection.stream.shutdown();
            if !connection.in_flight && !connection.receiving && !connection.cancelling {
                self.connections[number] = None;
                self.free.push(number);
            }
            return Ok(());
        }
        let may_receive = !connection.is_full() && !connection.closing && !connection.ended;
        if may_receive && !connection.receiving {
            let entry = connection.begin_receive();
            return self.submit(entry, number, kind::RECEIVE);
        }
        if connection.is_full() || connection.misses_value() {
            return self.cancel_receive(number);
        }
        Ok(())
    }

    /// Cancel the receive that is in flight, if there is one.
    fn cancel_receive(&mut self, number: usize) -> io::Result<()> {
        match &mut self.connections[number] {
            Some(connection) if connection.receiving && !connection.cancelling => {
                connection.cancelling = true;
                let target = (number as u64) << kind::BITS | kind::RECEIVE;
                self.submit(opcode::AsyncCancel::new(target).build(), number, kind::CANCEL)
            }
            _ => Ok(()),
        }
    }

    /// The connection watches the log from now on: hand it over, once the kernel does not use it any more.
    fn hand_over(&mut self, number: usize) -> io::Result<()> {
        self.cancel_receive(number)?;
        let idle = |open: &mut Box<Connection>| !open.receiving && !open.cancelling;
        let Some(mut connection) = self.connections[number].take_if(idle) else { return Ok(()) };
        self.free.push(number);
        if let Some(queue) = connection.session.take_watch() {
            let Connection { stream, guard, .. } = *connection;
            self.watchers.add(stream, guard, queue, Vec::new());
        }
        Ok(())
    }
}
