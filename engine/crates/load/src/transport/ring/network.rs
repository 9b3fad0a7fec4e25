//! The ring as a network of the event loop.

use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, AsRawFd};

use cachemark_uring::{ProvidedBuffers, ring};
use io_uring::opcode;
use io_uring::types::Fd;

use super::{Ring, RingState, kind};
use crate::io_traits::{Network, Ready, WaitLimit};
use crate::transport::background_connect::BackgroundConnect;
use crate::transport::sleep::sleep_ns;
use crate::transport::traits::{Transport, not_connected};

impl Network for Ring {
    fn connections(&self) -> usize {
        self.connections.len()
    }

    fn attach_thread(&mut self) -> io::Result<()> {
        let ring = ring()?;
        let provided = ProvidedBuffers::register(&ring.submitter(), ProvidedBuffers::COUNT)?;
        self.state = Some(RingState { ring, provided, outstanding: 0 });
        for c in 0..self.connections.len() {
            if self.connections[c].background.is_some() || self.connections[c].opening {
                self.watch_connect(c)?;
            } else {
                self.queue_submit(c);
            }
            if self.connections[c].has_input() {
                self.list_readable(c);
            }
        }
        Ok(())
    }

    fn detach_thread(&mut self) -> io::Result<()> {
        self.cancel_all()?;
        self.state = None;
        for connection in &mut self.connections {
            // Unexpected input, or output of which an unknown part was sent: the connection cannot be
            // used again.
            if !connection.arrived.is_empty() || connection.has_unsent() {
                connection.arrived.clear();
                connection.ended = connection.ended.or(Some(libc::EPROTO));
            }
            (connection.to_submit, connection.is_listed) = (false, false);
        }
        self.to_submit.clear();
        self.readable.clear();
        self.ready.clear();
        Ok(())
    }

    /// Output is submitted with the next wait.
    #[inline]
    fn write(&mut self, c: usize, bytes: &[u8]) -> io::Result<usize> {
        let connection = &mut self.connections[c];
        if connection.stream.is_none() {
            return Err(not_connected());
        }
        if !connection.has_room() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        connection.out.extend_from_slice(bytes);
        self.queue_submit(c);
        Ok(bytes.len())
    }

    /// Large values are not copied. They are written at once, because the slices may not live until the
    /// next wait.
    fn write_vectored(&mut self, c: usize, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let connection = &mut self.connections[c];
        let Some(stream) = &mut connection.stream else { return Err(not_connected()) };
        let waits = connection.in_flight
            || !connection.out.is_empty()
            || connection.sent < connection.sending.len();
        if !waits {
            match stream.write_vectored(slices) {
                // A queued send reports when the socket is writable.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
        }
        self.write(c, &slices[0])
    }

    #[inline]
    fn read(&mut self, c: usize, into: &mut [u8]) -> io::Result<usize> {
        let Some(state) = &mut self.state else { return Err(not_connected()) };
        let connection = &mut self.connections[c];
        let mut filled = 0;
        while let Some(arrival) = connection.arrived.front_mut() {
            let bytes = &state.provided.received(arrival.buffer, arrival.end)[arrival.begin..];
            let taken = bytes.len().min(into.len() - filled);
            into[filled..filled + taken].copy_from_slice(&bytes[..taken]);
            filled += taken;
            arrival.begin += taken;
            if arrival.begin < arrival.end {
                break;
            }
            state.provided.release(arrival.buffer);
            connection.arrived.pop_front();
        }
        match connection.ended {
            _ if filled > 0 => Ok(filled),
            Some(0) => Ok(0),
            Some(error) => Err(io::Error::from_raw_os_error(error)),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn watch_writable(&mut self, c: usize, watch: bool) -> io::Result<()> {
        self.connections[c].blocked = watch;
        Ok(())
    }

    fn close(&mut self, c: usize) {
        let sending = self.data(c, kind::SEND);
        let connection = &mut self.connections[c];
        if let Some(stream) = connection.stream.take() {
            // This ends the requests on the socket. The kernel keeps the socket until then.
            stream.shutdown();
        }
        if connection.in_flight {
            self.closed_sends.insert(sending, std::mem::take(&mut connection.sending));
        }
        if let Some(state) = &mut self.state {
            connection.arrived.drain(..).for_each(|arrival| state.provided.release(arrival.buffer));
        }
        connection.reset();
    }

    fn start_connect(&mut self, c: usize) -> io::Result<()> {
        let address = &self.addresses[c % self.addresses.len()];
        let connection = &mut self.connections[c];
        match Transport::start_connect(address, &self.connection_options) {
            Some(stream) => connection.stream = Some(stream?),
            None => {
                connection.background = Some(BackgroundConnect::start_connect(
                    address,
                    &self.connection_options,
                    self.timeout,
                )?)
            }
        }
        connection.opening = true;
        self.watch_connect(c)
    }

    fn finish_connect(&mut self, c: usize) -> io::Result<()> {
        let connection = &mut self.connections[c];
        connection.opening = false;
        if let Some(background) = connection.background.take() {
            connection.stream = Some(background.outcome()?);
        }
        connection.stream.as_ref().ok_or_else(not_connected)?.finish_connect()?;
        self.queue_submit(c);
        Ok(())
    }

    #[inline]
    fn wait(&mut self, limit: WaitLimit) -> io::Result<usize> {
        self.ready.clear();
        self.submit_queued()?;
        let connections = &mut self.connections;
        self.readable.retain(|c| {
            connections[*c].is_listed = connections[*c].has_input();
            connections[*c].is_listed
        });
        self.wait_for_completions(if self.readable.is_empty() { sleep_ns(limit) } else { 0 })?;
        self.ready.extend(self.readable.iter().map(|c| Ready { connection: *c, writable: false }));
        Ok(self.ready.len())
    }

    #[inline]
    fn ready(&self, n: usize) -> Ready {
        self.ready[n]
    }
}

impl Ring {
    /// Ask the kernel to report the end of a connect.
    fn watch_connect(&mut self, c: usize) -> io::Result<()> {
        let connection = &self.connections[c];
        let (socket, events) = match (&connection.background, &connection.stream) {
            (Some(background), _) => (background.as_fd(), libc::POLLIN),
            (None, Some(stream)) => (stream.as_fd(), libc::POLLOUT),
            (None, None) => return Err(not_connected()),
        };
        let entry = opcode::PollAdd::new(Fd(socket.as_raw_fd()), events as u32).build();
        self.submit(entry, self.data(c, kind::OPEN))
    }
}

impl Drop for Ring {
    /// If the thread was not detached, the kernel still uses the memory of the connections: leak it.
    fn drop(&mut self) {
        if self.state.is_some() && self.cancel_all().is_err() {
            std::mem::forget(std::mem::take(&mut self.connections));
            std::mem::forget(std::mem::take(&mut self.closed_sends));
            std::mem::forget(self.state.take());
        }
    }
}
