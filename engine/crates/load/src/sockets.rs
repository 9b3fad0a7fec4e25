//! The sockets of one thread behind level-triggered epoll, so that one read per readiness is
//! enough. At depth 1 an operation costs epoll_wait, read and write.

use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;

use crate::outside::{Nap, Network, Ready};
use crate::socket::{Address, Stream};

/// The last stretch before an operation is due is spun, as timers wake 30 to 90 µs late.
const SPIN_NS: u64 = 150_000;
/// So many are taken at once; the kernel keeps the others, and their turn.
const EVENTS: usize = 256;

pub struct Sockets {
    epoll: OwnedFd,
    streams: Vec<Option<Stream>>,
    ready: Vec<Ready>,
    /// Of the streams in turn.
    addresses: Vec<Address>,
}

impl Sockets {
    /// Connected sockets, so many sets of one to each address, watched for replies. An error comes
    /// with the address that could not be had.
    pub fn connect(
        addresses: &[Address],
        sets: usize,
        timeout: Duration,
    ) -> Result<Sockets, (Address, io::Error)> {
        let lost = |error: io::Error| (addresses[0].clone(), error);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| lost(e.into()))?;
        let mut sockets = Sockets {
            epoll,
            streams: Vec::with_capacity(sets * addresses.len()),
            ready: Vec::with_capacity(EVENTS),
            addresses: addresses.to_vec(),
        };
        for address in (0..sets).flat_map(|_| addresses) {
            sockets.add(address, timeout).map_err(|error| (address.clone(), error))?;
        }
        Ok(sockets)
    }

    fn add(&mut self, address: &Address, timeout: Duration) -> io::Result<()> {
        let stream = Stream::connect(address, timeout)?;
        let number = EventData::new_u64(self.streams.len() as u64);
        epoll::add(&self.epoll, &stream, number, EventFlags::IN)?;
        self.streams.push(Some(stream));
        Ok(())
    }

    fn watch(&self, c: usize, flags: EventFlags) -> io::Result<()> {
        let Some(stream) = &self.streams[c] else { return Err(closed()) };
        Ok(epoll::modify(&self.epoll, stream, EventData::new_u64(c as u64), flags)?)
    }
}

impl Network for Sockets {
    fn connections(&self) -> usize {
        self.streams.len()
    }

    #[inline]
    fn write(&mut self, c: usize, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.streams[c] {
            Some(stream) => stream.write(bytes),
            None => Err(closed()),
        }
    }

    #[inline]
    fn read(&mut self, c: usize, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.streams[c] {
            Some(stream) => stream.read(into),
            None => Err(closed()),
        }
    }

    fn watch_writes(&mut self, c: usize, watch: bool) -> io::Result<()> {
        self.watch(c, if watch { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN })
    }

    fn close(&mut self, c: usize) {
        // Dropping the socket takes it out of the epoll set.
        self.streams[c] = None;
    }

    fn begin(&mut self, c: usize) -> io::Result<()> {
        let stream = Stream::begin(&self.addresses[c % self.addresses.len()])?;
        epoll::add(&self.epoll, &stream, EventData::new_u64(c as u64), EventFlags::OUT)?;
        self.streams[c] = Some(stream);
        Ok(())
    }

    fn begun(&mut self, c: usize) -> io::Result<()> {
        self.streams[c].as_ref().ok_or_else(closed)?.connected()
    }

    #[inline]
    fn wait(&mut self, nap: Nap) -> io::Result<usize> {
        let until_due = nap.due_in_ns.map(|due| due.saturating_sub(SPIN_NS));
        let sleep_ns = until_due.into_iter().fold(nap.longest_ns, u64::min);
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

fn closed() -> io::Error {
    io::ErrorKind::NotConnected.into()
}
