//! The sockets of one thread behind io_uring. Replies come into buffers that the kernel was given
//! beforehand; what is to be sent is handed over with the wait for them, so that a turn of the loop is
//! one system call, however many connections have their turn in it.

mod network;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use cachemark_uring::{COMPLETIONS, GROUP, Provided};
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::background_connect::Entrance;
use super::stream::Stream;
use super::traits::{Transport, closed};
use crate::io_traits::Ready;
use crate::options::{Address, Way};

/// So much that is not sent yet, and a connection takes no more.
const BACKLOG_BYTES: usize = 256 * 1024;
/// The kernel lets go of what is under way at once when it is told to; this is looked at again after.
const LEAVING: Duration = Duration::from_millis(100);

/// What a completion is of; the connection's number and its epoch stand above it.
mod kind {
    pub const RECEIVE: u64 = 0;
    pub const SEND: u64 = 1;
    pub const OPEN: u64 = 2;
    pub const CANCEL: u64 = 3;
    pub const BITS: u32 = 2;
    pub const EPOCH_BITS: u32 = 32;
}

/// A ring and its buffers, of the thread that plays.
struct Core {
    // Dropped before the buffers that the kernel knows.
    ring: IoUring,
    provided: Provided,
    /// Requests whose last completion has not come.
    asked: usize,
}

/// Bytes that have come, and where they lie.
struct Arrival {
    buffer: u16,
    begin: usize,
    end: usize,
}

#[derive(Default)]
struct Line {
    stream: Option<Stream>,
    entrance: Option<Entrance<Stream>>,
    /// How often it was closed: completions of an older socket are nobody's.
    epoch: u32,
    /// To be sent, behind `sending`.
    out: Vec<u8>,
    /// What the kernel reads; not touched while a send is under way.
    sending: Vec<u8>,
    sent: usize,
    in_flight: bool,
    /// A receipt is asked for, and has not ended.
    listening: bool,
    arrived: VecDeque<Arrival>,
    /// What ended the connection: 0, or an error's number.
    ended: Option<i32>,
    /// It is not open yet.
    opening: bool,
    /// The loop waits for room.
    blocked: bool,
    /// It is on the list of those that something is to be asked for, and of those with news.
    attended: bool,
    told: bool,
}

impl Line {
    fn has_news(&self) -> bool {
        !self.arrived.is_empty() || self.ended.is_some()
    }

    fn has_unsent(&self) -> bool {
        !self.out.is_empty() || self.sent < self.sending.len()
    }

    fn has_room(&self) -> bool {
        self.out.len() < BACKLOG_BYTES
    }

    /// A line without a socket, of which the old one's completions are not.
    fn reset(&mut self) {
        let (out, sending) = (std::mem::take(&mut self.out), std::mem::take(&mut self.sending));
        let (attended, told) = (self.attended, self.told);
        *self = Line {
            epoch: self.epoch.wrapping_add(1),
            attended,
            told,
            out,
            sending,
            ..Line::default()
        };
        self.out.clear();
        self.sending.clear();
    }
}

pub struct Ring {
    core: Option<Core>,
    lines: Vec<Line>,
    ready: Vec<Ready>,
    /// Lines that something is to be asked for, and lines with news for the loop.
    attended: Vec<usize>,
    news: Vec<usize>,
    completed: Vec<(u64, i32, u32)>,
    /// What lines that were closed had the kernel send: kept until it has done with it.
    left: HashMap<u64, Vec<u8>>,
    /// Of the lines in turn.
    addresses: Vec<Address>,
    way: Way,
    timeout: Duration,
}

impl Ring {
    /// Connected sockets, so many sets of one to each address. An error comes with the address that
    /// could not be had.
    pub fn connect(
        addresses: &[Address],
        way: &Way,
        sets: usize,
        timeout: Duration,
    ) -> Result<Ring, (Address, io::Error)> {
        let mut lines = Vec::with_capacity(sets * addresses.len());
        for address in (0..sets).flat_map(|_| addresses) {
            let stream = <Stream as Transport>::enter(address, way, timeout);
            let stream = stream.map_err(|error| (address.clone(), error))?;
            lines.push(Line { stream: Some(stream), ..Line::default() });
        }
        let count = lines.len();
        Ok(Ring {
            core: None,
            lines,
            ready: Vec::with_capacity(2 * count),
            attended: Vec::with_capacity(count),
            news: Vec::with_capacity(count),
            completed: Vec::with_capacity(COMPLETIONS as usize),
            left: HashMap::new(),
            addresses: addresses.to_vec(),
            way: way.clone(),
            timeout,
        })
    }

    #[inline]
    fn attend(&mut self, c: usize) {
        if !std::mem::replace(&mut self.lines[c].attended, true) {
            self.attended.push(c);
        }
    }

    #[inline]
    fn tell(&mut self, c: usize) {
        if !std::mem::replace(&mut self.lines[c].told, true) {
            self.news.push(c);
        }
    }

    fn data(&self, c: usize, kind: u64) -> u64 {
        let epoch = u64::from(self.lines[c].epoch);
        ((c as u64) << kind::EPOCH_BITS | epoch) << kind::BITS | kind
    }

    #[inline]
    fn ask(&mut self, entry: squeue::Entry, data: u64) -> io::Result<()> {
        let Some(core) = &mut self.core else { return Err(closed()) };
        let entry = entry.user_data(data);
        loop {
            // SAFETY: what an entry points to is a line's `sending`, which is left alone until the
            // completion has come: `close` moves it to `left`, and `leave` waits for the kernel.
            if unsafe { core.ring.submission().push(&entry) }.is_ok() {
                core.asked += 1;
                return Ok(());
            }
            core.ring.submit()?;
        }
    }

    /// Ask for what lines need: a receipt, a send.
    fn hand_over(&mut self) -> io::Result<()> {
        while let Some(c) = self.attended.pop() {
            let line = &mut self.lines[c];
            line.attended = false;
            let Some(stream) = line.stream.as_ref() else { continue };
            if line.ended.is_some() || line.opening {
                continue;
            }
            let socket = Fd(stream.as_fd().as_raw_fd());
            let listens = std::mem::replace(&mut line.listening, true);
            let sends = line.has_unsent() && !line.in_flight;
            if sends {
                if line.sent == line.sending.len() {
                    line.sending.clear();
                    line.sent = 0;
                    std::mem::swap(&mut line.sending, &mut line.out);
                }
                line.in_flight = true;
            }
            let rest = &line.sending[line.sent..];
            let send = opcode::Send::new(socket, rest.as_ptr(), rest.len() as u32);
            if !listens {
                let entry = opcode::RecvMulti::new(socket, GROUP).build();
                self.ask(entry, self.data(c, kind::RECEIVE))?;
            }
            if sends {
                let entry = send.flags(libc::MSG_NOSIGNAL).build();
                self.ask(entry, self.data(c, kind::SEND))?;
            }
        }
        Ok(())
    }

    /// Hand over what was asked for, wait so long at most, and take what is done.
    fn turn(&mut self, longest_ns: u64) -> io::Result<()> {
        let Some(core) = &mut self.core else { return Err(closed()) };
        let longest = Timespec::from(Duration::from_nanos(longest_ns));
        let arguments = SubmitArgs::new().timespec(&longest);
        match core.ring.submitter().submit_with_args(1, &arguments) {
            Ok(_) => {}
            // EBUSY: completions are to be taken first.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)
                ) => {}
            Err(error) => return Err(error),
        }
        let done = core.ring.completion();
        self.completed.extend(done.map(|entry| (entry.user_data(), entry.result(), entry.flags())));
        let mut completed = std::mem::take(&mut self.completed);
        for (data, result, flags) in completed.drain(..) {
            self.completed(data, result, flags);
        }
        self.completed = completed;
        Ok(())
    }

    #[inline]
    fn completed(&mut self, data: u64, result: i32, flags: u32) {
        let Some(core) = &mut self.core else { return };
        core.asked -= usize::from(!cqueue::more(flags));
        let c = (data >> (kind::EPOCH_BITS + kind::BITS)) as usize;
        let epoch = (data >> kind::BITS) as u32;
        let of = data & ((1 << kind::BITS) - 1);
        if of == kind::CANCEL || self.lines[c].epoch != epoch {
            self.left.remove(&data);
            if let Some(buffer) = cqueue::buffer_select(flags) {
                core.provided.give(buffer);
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
        let Some(core) = &mut self.core else { return };
        let line = &mut self.lines[c];
        line.listening &= cqueue::more(flags);
        if let Some(buffer) = cqueue::buffer_select(flags) {
            if result > 0 {
                line.arrived.push_back(Arrival { buffer, begin: 0, end: result as usize });
            } else {
                core.provided.give(buffer);
            }
        }
        // Of the errors, these say only that the receipt has to be asked for again.
        let passing = [-libc::ENOBUFS, -libc::ECANCELED, -libc::EINTR, -libc::EAGAIN];
        if result <= 0 && !passing.contains(&result) {
            line.ended = line.ended.or(Some(-result));
        }
        if !self.lines[c].listening {
            self.attend(c);
        }
        if self.lines[c].has_news() {
            self.tell(c);
        }
    }

    fn sent(&mut self, c: usize, result: i32) {
        let line = &mut self.lines[c];
        line.in_flight = false;
        match -result {
            bytes if bytes <= 0 => line.sent += result as usize,
            libc::EINTR | libc::EAGAIN | libc::ECANCELED => {}
            error => line.ended = line.ended.or(Some(error)),
        }
        if line.blocked && line.has_room() {
            self.ready.push(Ready { connection: c, writable: true });
        }
        if self.lines[c].has_unsent() {
            self.attend(c);
        }
        if self.lines[c].ended.is_some() {
            self.tell(c);
        }
    }

    fn asked(&self) -> usize {
        self.core.as_ref().map_or(0, |core| core.asked)
    }

    /// Have the kernel let go of everything: the ring ends with the thread that made it.
    fn let_go(&mut self) -> io::Result<()> {
        let mut goes_on = false;
        while self.asked() > 0 {
            if !goes_on {
                let everything = CancelBuilder::any().all();
                self.ask(opcode::AsyncCancel2::new(everything).build(), kind::CANCEL)?;
            }
            let before = self.asked();
            self.turn(LEAVING.as_nanos() as u64)?;
            goes_on = self.asked() < before;
        }
        Ok(())
    }
}
