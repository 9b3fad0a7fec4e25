//! A distance between clients and their servers: a proxy that holds bytes, and changes nothing.
//!
//! Each read of either side is written to the other one when its time has come, in the order of arrival. The
//! bytes are not looked at, so encrypted ones pass too.

mod account;
mod held;
mod link;
mod way;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cachemark_scripted::monotonic_ns;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};

use crate::listener::Listener;
use crate::proxy::connect;
pub use account::{Account, SharedAccount};
pub use held::HeldSummary;
use link::{Link, Status};

const MAX_EVENTS: usize = 256;
const READ_BYTES: usize = 64 * 1024;
/// Numbers from here on are listeners.
const LISTENERS: u64 = 1 << 62;
/// The longest sleep, after which the stop flag is checked, and the listeners if there were too many open files.
const MAX_SLEEP_NS: u64 = 200_000_000;

/// A proxy with a listener for each server.
pub struct Distance {
    epoll: OwnedFd,
    listeners: Vec<(Listener, SocketAddr)>,
    one_way_ns: u64,
    links: Vec<Option<Link>>,
    free: Vec<usize>,
    /// Links with something to do at once, and those with something to do later.
    busy: Vec<usize>,
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    /// Clients may wait that could not be accepted.
    has_waiting: bool,
    scratch: Vec<u8>,
    account: SharedAccount,
}

impl Distance {
    /// Listen on ports that the system chooses, one for each server.
    pub fn listen(
        host: std::net::IpAddr,
        servers: &[SocketAddr],
        round_trip: Duration,
    ) -> io::Result<Distance> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let listeners = servers
            .iter()
            .map(|server| Ok((Listener::new(SocketAddr::new(host, 0))?, *server)))
            .collect::<io::Result<Vec<_>>>()?;
        for (number, (listener, _)) in listeners.iter().enumerate() {
            let socket = listener.socket().expect("it listens");
            let data = EventData::new_u64(LISTENERS + number as u64);
            epoll::add(&epoll, socket, data, EventFlags::IN | EventFlags::ET)?;
        }
        Ok(Distance {
            epoll,
            listeners,
            one_way_ns: (round_trip.as_nanos() as u64).div_ceil(2),
            links: Vec::new(),
            free: Vec::new(),
            busy: Vec::new(),
            timers: BinaryHeap::new(),
            has_waiting: false,
            scratch: vec![0; READ_BYTES],
            account: SharedAccount::default(),
        })
    }

    /// The addresses that it listens on, in the order of the servers.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().map(|(listener, _)| listener.address()).collect()
    }

    pub fn account(&self) -> SharedAccount {
        self.account.clone()
    }

    /// Pass bytes until `stop` is set.
    pub fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        // By default the kernel may wake a thread 50 µs late.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let account = self.account.clone();
        let mut room = [const { MaybeUninit::<Event>::uninit() }; MAX_EVENTS];
        while !stop.load(Ordering::Relaxed) {
            let sleep = Timespec { tv_sec: 0, tv_nsec: self.sleep_ns() as _ };
            let (events, _) = match epoll::wait(&self.epoll, &mut room, Some(&sleep)) {
                Ok(waited) => waited,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let account = &mut account.lock();
            for event in events {
                match event.data.u64() {
                    number if number >= LISTENERS => self.has_waiting = true,
                    number => self.note(number as usize, event.flags),
                }
            }
            if self.has_waiting {
                self.accept(account);
            }
            self.take_due();
            std::mem::take(&mut self.busy).into_iter().for_each(|slot| self.pump(slot, account));
        }
        Ok(())
    }

    fn sleep_ns(&self) -> u64 {
        if !self.busy.is_empty() {
            return 0;
        }
        let next_ns = self.timers.peek().map(|Reverse((due_ns, _))| *due_ns);
        next_ns.map_or(MAX_SLEEP_NS, |next_ns| {
            next_ns.saturating_sub(monotonic_ns()).min(MAX_SLEEP_NS)
        })
    }

    /// An event of a link: its slot and which of its ends.
    fn note(&mut self, number: usize, flags: EventFlags) {
        let slot = number / 2;
        let Some(Some(link)) = self.links.get_mut(slot) else { return };
        let end = if number.is_multiple_of(2) { &mut link.client } else { &mut link.upstream };
        let failed = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        end.is_readable |= failed || flags.intersects(EventFlags::IN | EventFlags::RDHUP);
        end.is_writable |= failed || flags.contains(EventFlags::OUT);
        if self.busy.last() != Some(&slot) {
            self.busy.push(slot);
        }
    }

    /// Links whose time has come have something to do.
    fn take_due(&mut self) {
        let now_ns = monotonic_ns();
        while let Some(Reverse((due_ns, slot))) = self.timers.peek().copied()
            && due_ns <= now_ns
        {
            self.timers.pop();
            self.busy.push(slot);
        }
    }

    fn pump(&mut self, slot: usize, account: &mut Account) {
        let Some(link) = &mut self.links[slot] else { return };
        match link.pump(&mut self.scratch, account) {
            Status::Open => {}
            Status::Busy => self.busy.push(slot),
            Status::Closed => {
                // Dropping the sockets removes them from epoll.
                self.links[slot] = None;
                self.free.push(slot);
                return;
            }
        }
        self.timers.extend(link.new_timers().map(|due_ns| Reverse((due_ns, slot))));
    }

    /// Accept the clients that wait. If there are too many open files, the rest waits for a later turn.
    fn accept(&mut self, account: &mut Account) {
        self.has_waiting = false;
        for number in 0..self.listeners.len() {
            loop {
                let (listener, server) = &mut self.listeners[number];
                match listener.accept() {
                    Ok(Some(client)) => {
                        let server = *server;
                        account.connections += 1;
                        if self.admit(client, server).is_err() {
                            account.refused += 1;
                        }
                    }
                    Ok(None) => break,
                    Err(_) => {
                        self.has_waiting = true;
                        break;
                    }
                }
            }
        }
    }

    /// Connect a client to its server. If that fails, dropping its socket ends its connection.
    fn admit(&mut self, client: TcpStream, server: SocketAddr) -> io::Result<()> {
        client.set_nonblocking(true)?;
        let link = Link::new(client, connect(server)?, self.one_way_ns);
        let slot = self.free.pop().unwrap_or(self.links.len());
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        for (side, end) in [&link.client, &link.upstream].into_iter().enumerate() {
            let data = EventData::new_u64((slot * 2 + side) as u64);
            epoll::add(&self.epoll, end.socket().as_fd(), data, flags)?;
        }
        if slot == self.links.len() {
            self.links.push(None);
        }
        self.links[slot] = Some(link);
        Ok(())
    }
}
