//! The ring as the loop sees it.

use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, AsRawFd};

use cachemark_uring::{Provided, ring};
use io_uring::opcode;
use io_uring::types::Fd;

use super::{Core, Ring, kind};
use crate::io_traits::{Nap, Network, Ready};
use crate::transport::background_connect::Entrance;
use crate::transport::sleep::sleep_ns;
use crate::transport::traits::{Transport, closed};

impl Network for Ring {
    fn connections(&self) -> usize {
        self.lines.len()
    }

    fn enter(&mut self) -> io::Result<()> {
        let ring = ring()?;
        let provided = Provided::register(&ring.submitter())?;
        self.core = Some(Core { ring, provided, asked: 0 });
        for c in 0..self.lines.len() {
            if self.lines[c].entrance.is_some() || self.lines[c].opening {
                self.watch_opening(c)?;
            } else {
                self.attend(c);
            }
            if self.lines[c].has_news() {
                self.tell(c);
            }
        }
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        self.let_go()?;
        self.core = None;
        for line in &mut self.lines {
            // Nobody has asked for it, or nobody knows how much of it has gone.
            if !line.arrived.is_empty() || line.has_unsent() {
                line.arrived.clear();
                line.ended = line.ended.or(Some(libc::EPROTO));
            }
            (line.attended, line.told) = (false, false);
        }
        self.attended.clear();
        self.news.clear();
        self.ready.clear();
        Ok(())
    }

    /// What is written is handed over with the next wait.
    #[inline]
    fn write(&mut self, c: usize, bytes: &[u8]) -> io::Result<usize> {
        let line = &mut self.lines[c];
        if line.stream.is_none() {
            return Err(closed());
        }
        if !line.has_room() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        line.out.extend_from_slice(bytes);
        self.attend(c);
        Ok(bytes.len())
    }

    /// Large values are not copied: they are written at once, as nothing says how long they live.
    fn write_pieces(&mut self, c: usize, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let line = &mut self.lines[c];
        let Some(stream) = &mut line.stream else { return Err(closed()) };
        let waits = line.in_flight || !line.out.is_empty() || line.sent < line.sending.len();
        if !waits {
            match stream.write_vectored(pieces) {
                // The kernel is to tell when there is room: with a send.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
        }
        self.write(c, &pieces[0])
    }

    #[inline]
    fn read(&mut self, c: usize, into: &mut [u8]) -> io::Result<usize> {
        let Some(core) = &mut self.core else { return Err(closed()) };
        let line = &mut self.lines[c];
        let mut filled = 0;
        while let Some(arrival) = line.arrived.front_mut() {
            let bytes = &core.provided.filled(arrival.buffer, arrival.end)[arrival.begin..];
            let taken = bytes.len().min(into.len() - filled);
            into[filled..filled + taken].copy_from_slice(&bytes[..taken]);
            filled += taken;
            arrival.begin += taken;
            if arrival.begin < arrival.end {
                break;
            }
            core.provided.give(arrival.buffer);
            line.arrived.pop_front();
        }
        match line.ended {
            _ if filled > 0 => Ok(filled),
            Some(0) => Ok(0),
            Some(error) => Err(io::Error::from_raw_os_error(error)),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn watch_writes(&mut self, c: usize, watch: bool) -> io::Result<()> {
        self.lines[c].blocked = watch;
        Ok(())
    }

    fn close(&mut self, c: usize) {
        let sending = self.data(c, kind::SEND);
        let line = &mut self.lines[c];
        if let Some(stream) = line.stream.take() {
            // Ends what is under way on it; the kernel holds the socket until then.
            stream.shutdown();
        }
        if line.in_flight {
            self.left.insert(sending, std::mem::take(&mut line.sending));
        }
        if let Some(core) = &mut self.core {
            line.arrived.drain(..).for_each(|arrival| core.provided.give(arrival.buffer));
        }
        line.reset();
    }

    fn begin(&mut self, c: usize) -> io::Result<()> {
        let address = &self.addresses[c % self.addresses.len()];
        let line = &mut self.lines[c];
        match Transport::begin(address, &self.way) {
            Some(stream) => line.stream = Some(stream?),
            None => line.entrance = Some(Entrance::begin(address, &self.way, self.timeout)?),
        }
        line.opening = true;
        self.watch_opening(c)
    }

    fn begun(&mut self, c: usize) -> io::Result<()> {
        let line = &mut self.lines[c];
        line.opening = false;
        if let Some(entrance) = line.entrance.take() {
            line.stream = Some(entrance.outcome()?);
        }
        line.stream.as_ref().ok_or_else(closed)?.begun()?;
        self.attend(c);
        Ok(())
    }

    #[inline]
    fn wait(&mut self, nap: Nap) -> io::Result<usize> {
        self.ready.clear();
        self.hand_over()?;
        let lines = &mut self.lines;
        self.news.retain(|c| {
            lines[*c].told = lines[*c].has_news();
            lines[*c].told
        });
        self.turn(if self.news.is_empty() { sleep_ns(nap) } else { 0 })?;
        self.ready.extend(self.news.iter().map(|c| Ready { connection: *c, writable: false }));
        Ok(self.ready.len())
    }

    #[inline]
    fn ready(&self, n: usize) -> Ready {
        self.ready[n]
    }
}

impl Ring {
    /// Have the kernel tell when a line is open, or has failed.
    fn watch_opening(&mut self, c: usize) -> io::Result<()> {
        let line = &self.lines[c];
        let (socket, events) = match (&line.entrance, &line.stream) {
            (Some(entrance), _) => (entrance.as_fd(), libc::POLLIN),
            (None, Some(stream)) => (stream.as_fd(), libc::POLLOUT),
            (None, None) => return Err(closed()),
        };
        let entry = opcode::PollAdd::new(Fd(socket.as_raw_fd()), events as u32).build();
        self.ask(entry, self.data(c, kind::OPEN))
    }
}

impl Drop for Ring {
    /// A ring that was not left has requests under way that point to the lines' memory.
    fn drop(&mut self) {
        if self.core.is_some() && self.let_go().is_err() {
            std::mem::forget(std::mem::take(&mut self.lines));
            std::mem::forget(std::mem::take(&mut self.left));
            std::mem::forget(self.core.take());
        }
    }
}
