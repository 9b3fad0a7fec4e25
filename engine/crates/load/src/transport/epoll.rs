//! The sockets of one thread with epoll. It is level-triggered, so one read per event is enough. At
//! depth 1 an operation costs one epoll_wait, one read and one write.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;

use super::background_connect::BackgroundConnect;
use super::sleep::{sleep_ns, whole_ms};
use super::stream::Stream;
use super::traits::{Transport, not_connected};
use crate::io_traits::{Network, Ready, WaitLimit};
use crate::options::{Address, ConnectionOptions};

/// The maximum number of events per wait. The kernel keeps the others for the next one.
const MAX_EVENTS: usize = 256;

pub struct EpollSockets<S = Stream> {
    epoll: OwnedFd,
    streams: Vec<Option<S>>,
    /// Connections that connect in the background.
    connecting: Vec<Option<BackgroundConnect<S>>>,
    ready: Vec<Ready>,
    /// The servers. Connection `c` goes to address `c` modulo their number.
    addresses: Vec<Address>,
    connection_options: ConnectionOptions,
    timeout: Duration,
    /// Connections with decrypted input that epoll does not report.
    unread: Vec<usize>,
    /// Whether the event loop waits until a connection is writable, and whether the transport does.
    blocked: Vec<bool>,
    buffering: Vec<bool>,
}

impl<S: Transport> EpollSockets<S> {
    /// Connect `per_address` times to each address. An error comes with the address that failed.
    pub fn connect(
        addresses: &[Address],
        connection_options: &ConnectionOptions,
        per_address: usize,
        timeout: Duration,
    ) -> Result<EpollSockets<S>, (Address, io::Error)> {
        let lost = |error: io::Error| (addresses[0].clone(), error);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| lost(e.into()))?;
        let count = per_address * addresses.len();
        let mut sockets = EpollSockets {
            epoll,
            streams: Vec::with_capacity(count),
            connecting: (0..count).map(|_| None).collect(),
            ready: Vec::with_capacity(MAX_EVENTS),
            addresses: addresses.to_vec(),
            connection_options: connection_options.clone(),
            timeout,
            unread: Vec::with_capacity(if S::BUFFERS { count } else { 0 }),
            blocked: vec![false; count],
            buffering: vec![false; count],
        };
        for address in (0..per_address).flat_map(|_| addresses) {
            sockets.add(address).map_err(|error| (address.clone(), error))?;
        }
        Ok(sockets)
    }

    fn add(&mut self, address: &Address) -> io::Result<()> {
        let stream = S::open(address, &self.connection_options, self.timeout)?;
        let number = EventData::new_u64(self.streams.len() as u64);
        epoll::add(&self.epoll, &stream, number, EventFlags::IN)?;
        self.streams.push(Some(stream));
        Ok(())
    }

    fn watch(&self, c: usize) -> io::Result<()> {
        let Some(stream) = &self.streams[c] else { return Err(not_connected()) };
        let writes = self.blocked[c] || self.buffering[c];
        let flags = if writes { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        Ok(epoll::modify(&self.epoll, stream, EventData::new_u64(c as u64), flags)?)
    }

    /// Reconnect on a thread, because a login or a handshake takes several steps.
    fn connect_in_background(&mut self, c: usize, address: &Address) -> io::Result<()> {
        let background =
            BackgroundConnect::start_connect(address, &self.connection_options, self.timeout)?;
        epoll::add(&self.epoll, &background, EventData::new_u64(c as u64), EventFlags::IN)?;
        self.connecting[c] = Some(background);
        Ok(())
    }

    /// After a write, or when the socket is writable: send what the transport has buffered.
    fn flush_output(&mut self, c: usize) -> io::Result<()> {
        let Some(stream) = &mut self.streams[c] else { return Err(not_connected()) };
        let holds = !stream.flush_output()?;
        if holds != self.buffering[c] {
            self.buffering[c] = holds;
            self.watch(c)?;
        }
        Ok(())
    }

    /// Add the events that only the transports know: their output buffers and their decrypted input.
    fn add_transport_events(&mut self) {
        for n in 0..self.ready.len() {
            let Ready { connection: c, writable } = self.ready[n];
            // An error appears again at the next read.
            if writable && self.buffering[c] {
                let _ = self.flush_output(c);
                self.ready[n].writable = self.blocked[c];
            }
        }
        let unread = self.unread.drain(..);
        self.ready.extend(unread.map(|connection| Ready { connection, writable: false }));
    }
}

impl<S: Transport> Network for EpollSockets<S> {
    fn connections(&self) -> usize {
        self.streams.len()
    }

    #[inline]
    fn write(&mut self, c: usize, bytes: &[u8]) -> io::Result<usize> {
        let Some(stream) = &mut self.streams[c] else { return Err(not_connected()) };
        let written = stream.write(bytes);
        if S::BUFFERS {
            self.flush_output(c)?;
        }
        written
    }

    fn write_vectored(&mut self, c: usize, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(stream) = &mut self.streams[c] else { return Err(not_connected()) };
        let written = stream.write_vectored(slices);
        if S::BUFFERS {
            self.flush_output(c)?;
        }
        written
    }

    #[inline]
    fn read(&mut self, c: usize, into: &mut [u8]) -> io::Result<usize> {
        let Some(stream) = &mut self.streams[c] else { return Err(not_connected()) };
        let read = stream.read(into);
        if S::BUFFERS && stream.has_buffered_input() && !self.unread.contains(&c) {
            self.unread.push(c);
        }
        read
    }

    fn watch_writable(&mut self, c: usize, watch: bool) -> io::Result<()> {
        self.blocked[c] = watch;
        self.watch(c)
    }

    fn close(&mut self, c: usize) {
        // Dropping the socket removes it from epoll.
        self.streams[c] = None;
        self.connecting[c] = None;
        self.unread.retain(|other| *other != c);
        self.blocked[c] = false;
        self.buffering[c] = false;
    }

    fn start_connect(&mut self, c: usize) -> io::Result<()> {
        let address = self.addresses[c % self.addresses.len()].clone();
        let Some(stream) = S::start_connect(&address, &self.connection_options) else {
            return self.connect_in_background(c, &address);
        };
        let stream = stream?;
        epoll::add(&self.epoll, &stream, EventData::new_u64(c as u64), EventFlags::OUT)?;
        self.streams[c] = Some(stream);
        Ok(())
    }

    fn finish_connect(&mut self, c: usize) -> io::Result<()> {
        if let Some(background) = self.connecting[c].take() {
            epoll::delete(&self.epoll, &background)?;
            let stream = background.outcome()?;
            epoll::add(&self.epoll, &stream, EventData::new_u64(c as u64), EventFlags::IN)?;
            self.streams[c] = Some(stream);
            return Ok(());
        }
        self.streams[c].as_ref().ok_or_else(not_connected)?.finish_connect()
    }

    #[inline]
    fn wait(&mut self, limit: WaitLimit) -> io::Result<usize> {
        let limit = if S::BUFFERS && !self.unread.is_empty() { WaitLimit::NONE } else { limit };
        let sleep_ns = whole_ms(limit, sleep_ns(limit));
        let timeout = Timespec {
            tv_sec: (sleep_ns / 1_000_000_000) as i64,
            tv_nsec: (sleep_ns % 1_000_000_000) as i64,
        };
        // On the stack and not in `self`: an event may hold a pointer, so it could not be sent to
        // another thread.
        let mut room = [const { MaybeUninit::<Event>::uninit() }; MAX_EVENTS];
        self.ready.clear();
        match epoll::wait(&self.epoll, &mut room, Some(&timeout)) {
            Ok((events, _)) => self.ready.extend(events.iter().map(ready)),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if S::BUFFERS {
            self.add_transport_events();
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
