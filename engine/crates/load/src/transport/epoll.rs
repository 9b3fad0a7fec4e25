//! The sockets of one thread behind level-triggered epoll, so that one read per readiness is
//! enough. At depth 1 an operation costs epoll_wait, read and write.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;

use super::background_connect::Entrance;
use super::sleep::{sleep_ns, whole_ms};
use super::stream::Stream;
use super::traits::{Transport, closed};
use crate::io_traits::{Nap, Network, Ready};
use crate::options::{Address, Way};

/// So many are taken at once; the kernel keeps the others, and their turn.
const EVENTS: usize = 256;

pub struct Sockets<S = Stream> {
    epoll: OwnedFd,
    streams: Vec<Option<S>>,
    /// Connections that are being opened by a thread of their own.
    entering: Vec<Option<Entrance<S>>>,
    ready: Vec<Ready>,
    /// Of the streams in turn.
    addresses: Vec<Address>,
    way: Way,
    timeout: Duration,
    /// Connections whose transport has something to read that the socket does not tell of.
    unread: Vec<usize>,
    /// Whether the loop waits for room to write, and whether the transport does.
    blocked: Vec<bool>,
    holding: Vec<bool>,
}

impl<S: Transport> Sockets<S> {
    /// Connected sockets, so many sets of one to each address, watched for replies. An error comes
    /// with the address that could not be had.
    pub fn connect(
        addresses: &[Address],
        way: &Way,
        sets: usize,
        timeout: Duration,
    ) -> Result<Sockets<S>, (Address, io::Error)> {
        let lost = |error: io::Error| (addresses[0].clone(), error);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| lost(e.into()))?;
        let count = sets * addresses.len();
        let mut sockets = Sockets {
            epoll,
            streams: Vec::with_capacity(count),
            entering: (0..count).map(|_| None).collect(),
            ready: Vec::with_capacity(EVENTS),
            addresses: addresses.to_vec(),
            way: way.clone(),
            timeout,
            unread: Vec::with_capacity(if S::HOLDS { count } else { 0 }),
            blocked: vec![false; count],
            holding: vec![false; count],
        };
        for address in (0..sets).flat_map(|_| addresses) {
            sockets.add(address).map_err(|error| (address.clone(), error))?;
        }
        Ok(sockets)
    }

    fn add(&mut self, address: &Address) -> io::Result<()> {
        let stream = S::enter(address, &self.way, self.timeout)?;
        let number = EventData::new_u64(self.streams.len() as u64);
        epoll::add(&self.epoll, &stream, number, EventFlags::IN)?;
        self.streams.push(Some(stream));
        Ok(())
    }

    fn watch(&self, c: usize) -> io::Result<()> {
        let Some(stream) = &self.streams[c] else { return Err(closed()) };
        let writes = self.blocked[c] || self.holding[c];
        let flags = if writes { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        Ok(epoll::modify(&self.epoll, stream, EventData::new_u64(c as u64), flags)?)
    }

    /// Be let in again, on a thread, as that takes answers of the server.
    fn enter(&mut self, c: usize, address: &Address) -> io::Result<()> {
        let entrance = Entrance::begin(address, &self.way, self.timeout)?;
        epoll::add(&self.epoll, &entrance, EventData::new_u64(c as u64), EventFlags::IN)?;
        self.entering[c] = Some(entrance);
        Ok(())
    }

    /// After a write, or when there is room: see to what the transport has not sent yet.
    fn push(&mut self, c: usize) -> io::Result<()> {
        let Some(stream) = &mut self.streams[c] else { return Err(closed()) };
        let holds = !stream.push()?;
        if holds != self.holding[c] {
            self.holding[c] = holds;
            self.watch(c)?;
        }
        Ok(())
    }

    /// What the sockets told is not all: transports hold bytes.
    fn ready_of_transports(&mut self) {
        for n in 0..self.ready.len() {
            let Ready { connection: c, writable } = self.ready[n];
            // An error shows again when it is read.
            if writable && self.holding[c] {
                let _ = self.push(c);
                self.ready[n].writable = self.blocked[c];
            }
        }
        let unread = self.unread.drain(..);
        self.ready.extend(unread.map(|connection| Ready { connection, writable: false }));
    }
}

impl<S: Transport> Network for Sockets<S> {
    fn connections(&self) -> usize {
        self.streams.len()
    }

    #[inline]
    fn write(&mut self, c: usize, bytes: &[u8]) -> io::Result<usize> {
        let Some(stream) = &mut self.streams[c] else { return Err(closed()) };
        let written = stream.write(bytes);
        if S::HOLDS {
            self.push(c)?;
        }
        written
    }

    fn write_pieces(&mut self, c: usize, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(stream) = &mut self.streams[c] else { return Err(closed()) };
        let written = stream.write_vectored(pieces);
        if S::HOLDS {
            self.push(c)?;
        }
        written
    }

    #[inline]
    fn read(&mut self, c: usize, into: &mut [u8]) -> io::Result<usize> {
        let Some(stream) = &mut self.streams[c] else { return Err(closed()) };
        let read = stream.read(into);
        if S::HOLDS && stream.has_unread() && !self.unread.contains(&c) {
            self.unread.push(c);
        }
        read
    }

    fn watch_writes(&mut self, c: usize, watch: bool) -> io::Result<()> {
        self.blocked[c] = watch;
        self.watch(c)
    }

    fn close(&mut self, c: usize) {
        // Dropping the socket takes it out of the epoll set.
        self.streams[c] = None;
        self.entering[c] = None;
        self.unread.retain(|other| *other != c);
        self.blocked[c] = false;
        self.holding[c] = false;
    }

    fn begin(&mut self, c: usize) -> io::Result<()> {
        let address = self.addresses[c % self.addresses.len()].clone();
        let Some(stream) = S::begin(&address, &self.way) else { return self.enter(c, &address) };
        let stream = stream?;
        epoll::add(&self.epoll, &stream, EventData::new_u64(c as u64), EventFlags::OUT)?;
        self.streams[c] = Some(stream);
        Ok(())
    }

    fn begun(&mut self, c: usize) -> io::Result<()> {
        if let Some(entrance) = self.entering[c].take() {
            epoll::delete(&self.epoll, &entrance)?;
            let stream = entrance.outcome()?;
            epoll::add(&self.epoll, &stream, EventData::new_u64(c as u64), EventFlags::IN)?;
            self.streams[c] = Some(stream);
            return Ok(());
        }
        self.streams[c].as_ref().ok_or_else(closed)?.begun()
    }

    #[inline]
    fn wait(&mut self, nap: Nap) -> io::Result<usize> {
        let nap = if S::HOLDS && !self.unread.is_empty() { Nap::NONE } else { nap };
        let sleep_ns = whole_ms(nap, sleep_ns(nap));
        let timeout = Timespec {
            tv_sec: (sleep_ns / 1_000_000_000) as i64,
            tv_nsec: (sleep_ns % 1_000_000_000) as i64,
        };
        // Not kept in `self`: an event may hold a pointer, and so could not go to another thread.
        let mut room = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
        self.ready.clear();
        match epoll::wait(&self.epoll, &mut room, Some(&timeout)) {
            Ok((events, _)) => self.ready.extend(events.iter().map(ready)),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if S::HOLDS {
            self.ready_of_transports();
        }
        Ok(self.ready.len())
    }

    #[inline]
    fn ready(&self, n: usize) -> Ready {
        self.ready[n]
    }
}

fn ready(event: &Event) -> Ready {
    let flags = event.flags;
    Ready { connection: event.data.u64() as usize, writable: flags.contains(EventFlags::OUT) }
}
