//! The thin shell round a player: sockets, epoll and the clock of one thread.
//!
//! Level-triggered epoll, so that one read per readiness is enough. At depth 1 an operation costs
//! epoll_wait, read and write, and two readings of the clock.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;

use crate::clock::now_ns;
use crate::player::Player;
use crate::socket::{Address, Stream};
use crate::tally::Failure;

/// The last stretch before an operation is due is spun, as timers wake 30 to 90 µs late.
const SPIN_NS: u64 = 150_000;
/// The stop flag is looked at this often even when nothing happens.
const LONGEST_SLEEP_NS: u64 = 20_000_000;
/// Progress is told this often.
const PROGRESS_EVERY_NS: u64 = 50_000_000;
/// A window is given up when no connection has been up for so many time-outs.
const DOWN_TIMEOUTS: u64 = 3;
/// So many writes may follow each other before the sockets are looked at.
const BUSY_ROUNDS: u64 = 64;
/// A lost connection is opened again after this, then twice, four times … as long.
const RECONNECT_FIRST_NS: u64 = 10_000_000;
const RECONNECT_LONGEST_NS: u64 = 500_000_000;

/// What the threads of a run share.
#[derive(Default)]
pub struct Shared {
    pub stop: AtomicBool,
    pub ok: AtomicU64,
    pub failed: AtomicU64,
}

/// A connection's socket between uses.
enum Link {
    Open(Stream),
    Connecting(Stream),
    /// Closed; to be opened again at this instant, then after that long.
    Closed {
        again_ns: u64,
        wait_ns: u64,
    },
}

/// The sockets of one thread; they outlive a run.
pub struct Sockets {
    epoll: OwnedFd,
    links: Vec<Link>,
    blocked: Vec<bool>,
    /// Of the links in turn.
    addresses: Vec<Address>,
}

impl Sockets {
    /// Connected sockets, watched for replies.
    pub fn new(streams: Vec<Stream>, addresses: Vec<Address>) -> io::Result<Sockets> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (c, stream) in streams.iter().enumerate() {
            epoll::add(&epoll, stream, EventData::new_u64(c as u64), EventFlags::IN)?;
        }
        Ok(Sockets {
            epoll,
            blocked: vec![false; streams.len()],
            links: streams.into_iter().map(Link::Open).collect(),
            addresses,
        })
    }

    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Connections to each server.
    pub fn sets(&self) -> usize {
        self.links.len() / self.addresses.len()
    }

    fn watch(&self, c: usize, stream: &Stream, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, stream, EventData::new_u64(c as u64), flags)?)
    }

    fn close(&mut self, c: usize, now_ns: u64) {
        let wait_ns = RECONNECT_FIRST_NS;
        self.blocked[c] = false;
        // Dropping the socket takes it out of the epoll set.
        self.links[c] = Link::Closed { again_ns: now_ns, wait_ns };
    }
}

/// Plays one window on one thread.
pub struct EventLoop<'run, 'tape> {
    pub player: Player<'tape>,
    sockets: &'run mut Sockets,
    shared: &'run Shared,
    events: Vec<Event>,
    drain_end_ns: u64,
    room: bool,
    rounds: u64,
    up_ns: u64,
    told_ns: u64,
    told: (u64, u64),
}

impl<'run, 'tape> EventLoop<'run, 'tape> {
    /// A loop that gives up what is still outstanding at `drain_end_ns`.
    pub fn new(
        player: Player<'tape>,
        sockets: &'run mut Sockets,
        shared: &'run Shared,
        drain_end_ns: u64,
    ) -> EventLoop<'run, 'tape> {
        let room = sockets.len().clamp(1, 1024);
        EventLoop {
            player,
            sockets,
            shared,
            events: Vec::with_capacity(room),
            drain_end_ns,
            room: false,
            rounds: 0,
            up_ns: now_ns(),
            told_ns: 0,
            told: (0, 0),
        }
    }

    /// Play until the window is over and drained.
    pub fn run(mut self) -> io::Result<Player<'tape>> {
        for c in 0..self.sockets.len() {
            if !matches!(self.sockets.links[c], Link::Open(_)) {
                self.player.lost(c, Failure::Connection, now_ns());
            }
        }
        loop {
            let now = now_ns();
            if self.shared.stop.load(Ordering::Relaxed) {
                self.player.stop();
            }
            self.player.issue(now);
            self.player.close_quiet(now);
            self.flush(now)?;
            if self.player.finished(now) || now >= self.drain_end_ns {
                break;
            }
            if self.busy() {
                continue;
            }
            self.wait(now)?;
            self.keep_up();
        }
        let now = now_ns();
        self.player.abandon(now);
        self.give_up(now);
        self.tell(now);
        Ok(self.player)
    }

    /// Whether to go on at once: a write made room, as operations without a reply are complete
    /// when they are written. Every so often the sockets and the clock have their turn all the same.
    fn busy(&mut self) -> bool {
        self.rounds = if std::mem::take(&mut self.room) { self.rounds + 1 } else { 0 };
        self.rounds > 0 && !self.rounds.is_multiple_of(BUSY_ROUNDS)
    }

    /// At the end of the drain nothing may stay outstanding.
    fn give_up(&mut self, now: u64) {
        for c in 0..self.sockets.len() {
            if self.player.is_up(c) && !self.player.is_idle(c) {
                self.player.lost(c, Failure::Timeout, now);
                self.sockets.close(c, now);
            }
        }
    }

    fn flush(&mut self, mut now: u64) -> io::Result<()> {
        for c in 0..self.sockets.len() {
            while self.player.has_outgoing(c) && !self.sockets.blocked[c] {
                let Link::Open(stream) = &mut self.sockets.links[c] else { break };
                match stream.write(self.player.outgoing(c, now)) {
                    Ok(bytes) => {
                        now = now_ns();
                        self.room |= self.player.wrote(c, bytes, now);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.block(c)?,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => self.lose(c, Failure::Connection),
                }
            }
        }
        Ok(())
    }

    fn block(&mut self, c: usize) -> io::Result<()> {
        self.sockets.blocked[c] = true;
        let Link::Open(stream) = &self.sockets.links[c] else { return Ok(()) };
        self.sockets.watch(c, stream, EventFlags::IN | EventFlags::OUT)
    }

    fn lose(&mut self, c: usize, failure: Failure) {
        let now = now_ns();
        self.player.lost(c, failure, now);
        self.sockets.close(c, now);
    }

    fn wait(&mut self, now: u64) -> io::Result<()> {
        let sleep_ns = self.sleep_ns(now);
        let timeout = Timespec {
            tv_sec: (sleep_ns / 1_000_000_000) as i64,
            tv_nsec: (sleep_ns % 1_000_000_000) as i64,
        };
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        let spare = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.sockets.epoll, spare, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            self.ready(event.data.u64() as usize, event.flags)?;
        }
        self.events = events;
        Ok(())
    }

    /// Sleep until shortly before the next thing that time brings.
    fn sleep_ns(&self, now: u64) -> u64 {
        if self.rounds > 0 {
            return 0;
        }
        let until_due = self.player.next_due_ns().map(|due| due.saturating_sub(now + SPIN_NS));
        let until_timeout = self.player.next_timeout_ns().map(|at| at.saturating_sub(now));
        let until_connect = self.sockets.links.iter().filter_map(|link| match link {
            Link::Closed { again_ns, .. } => Some(again_ns.saturating_sub(now)),
            _ => None,
        });
        until_connect.chain(until_due).chain(until_timeout).fold(LONGEST_SLEEP_NS, u64::min)
    }

    fn ready(&mut self, c: usize, flags: EventFlags) -> io::Result<()> {
        match &mut self.sockets.links[c] {
            Link::Open(stream) => {
                if flags.contains(EventFlags::OUT) {
                    self.sockets.blocked[c] = false;
                    let Link::Open(stream) = &self.sockets.links[c] else { return Ok(()) };
                    return self.sockets.watch(c, stream, EventFlags::IN);
                }
                match stream.read(self.player.incoming(c)) {
                    Ok(0) => self.lose(c, Failure::Connection),
                    Ok(bytes) => {
                        if self.player.read(c, bytes, now_ns()).is_err() {
                            self.sockets.close(c, now_ns());
                        }
                    }
                    Err(error)
                        if matches!(
                            error.kind(),
                            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                        ) => {}
                    Err(_) => self.lose(c, Failure::Connection),
                }
                Ok(())
            }
            Link::Connecting(_) => self.connected(c),
            Link::Closed { .. } => Ok(()),
        }
    }

    fn connected(&mut self, c: usize) -> io::Result<()> {
        let closed = Link::Closed { again_ns: 0, wait_ns: 0 };
        let Link::Connecting(stream) = std::mem::replace(&mut self.sockets.links[c], closed) else {
            return Ok(());
        };
        if stream.connected().is_err() {
            self.put_off(c, RECONNECT_LONGEST_NS);
            return Ok(());
        }
        self.sockets.watch(c, &stream, EventFlags::IN)?;
        self.sockets.links[c] = Link::Open(stream);
        self.player.restored(c);
        Ok(())
    }

    fn put_off(&mut self, c: usize, wait_ns: u64) {
        let again_ns = now_ns() + wait_ns;
        let wait_ns = (wait_ns * 2).min(RECONNECT_LONGEST_NS);
        self.sockets.links[c] = Link::Closed { again_ns, wait_ns };
    }

    /// What time brings: timeouts, reconnects, progress.
    fn keep_up(&mut self) {
        let now = now_ns();
        let sockets = &mut *self.sockets;
        self.player.expire(now, |c| sockets.close(c, now));
        for c in 0..self.sockets.len() {
            if let Link::Closed { again_ns, wait_ns } = self.sockets.links[c]
                && again_ns <= now
            {
                self.reopen(c, wait_ns);
            }
        }
        if now - self.told_ns >= PROGRESS_EVERY_NS {
            self.tell(now);
        }
        if self.player.any_up() {
            self.up_ns = now;
        } else if now - self.up_ns > DOWN_TIMEOUTS * self.player.timeout_ns() {
            self.player.stop();
        }
    }

    fn reopen(&mut self, c: usize, wait_ns: u64) {
        let address = &self.sockets.addresses[c % self.sockets.addresses.len()];
        let begun = Stream::begin(address).and_then(|stream| {
            let data = EventData::new_u64(c as u64);
            epoll::add(&self.sockets.epoll, &stream, data, EventFlags::OUT)?;
            Ok(stream)
        });
        match begun {
            Ok(stream) => self.sockets.links[c] = Link::Connecting(stream),
            Err(_) => self.put_off(c, wait_ns),
        }
    }

    fn tell(&mut self, now: u64) {
        let (ok, failed) = self.player.progress();
        self.shared.ok.fetch_add(ok - self.told.0, Ordering::Relaxed);
        self.shared.failed.fetch_add(failed - self.told.1, Ordering::Relaxed);
        self.told = (ok, failed);
        self.told_ns = now;
    }
}
