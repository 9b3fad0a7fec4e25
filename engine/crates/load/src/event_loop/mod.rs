//! The loop of one thread round its player: writes what is to go out, reads what has come, and
//! does what time brings. The clock and the connections are given to it.

mod connections;
mod shared;
mod timers;

use std::io;
use std::sync::atomic::Ordering;

use cachemark_planted::{Bug, planted};

use connections::Link;
pub use connections::Links;
pub use shared::Shared;

use crate::connection::{Batch, Text, Wire};
use crate::io_traits::{Clock, Nap, Network, Ready};
use crate::operation::Failure;
use crate::player::Player;

/// The stop flag is looked at this often even when nothing happens.
const LONGEST_SLEEP_NS: u64 = 20_000_000;
/// Nothing is asked for while what has come is read, so that ends, unless a server sends for ever.
const LOOKS: usize = 4096;
/// Replies that have come are read first unless something is due for longer. With less they are read so
/// much later that the p99 of the response time rises (by a tenth, in virtual trials at half of the rate).
const OVERDUE_NS: u64 = 20_000;
/// So many writes may follow each other before the connections are looked at.
const BUSY_ROUNDS: u64 = 64;

/// Plays one window on one thread.
pub struct EventLoop<'run, 'tape, C, N, W = Text> {
    player: Player<'tape, W>,
    clock: C,
    links: &'run mut Links<N>,
    shared: &'run Shared,
    drain_end_ns: u64,
    /// Whether operations are due at instants.
    timed: bool,
    room: bool,
    rounds: u64,
    up_ns: u64,
    keep_ns: u64,
    told_ns: u64,
    told: (u64, u64),
    /// When the current interval began.
    interval_ns: u64,
}

impl<'run, 'tape, C: Clock, N: Network, W: Wire> EventLoop<'run, 'tape, C, N, W> {
    /// A loop that gives up what is still outstanding at `drain_end_ns`.
    pub fn new(
        player: Player<'tape, W>,
        clock: C,
        links: &'run mut Links<N>,
        shared: &'run Shared,
        drain_end_ns: u64,
    ) -> EventLoop<'run, 'tape, C, N, W> {
        let up_ns = clock.now_ns();
        EventLoop {
            timed: player.is_timed(),
            player,
            clock,
            links,
            shared,
            drain_end_ns,
            room: false,
            rounds: 0,
            up_ns,
            keep_ns: 0,
            told_ns: 0,
            told: (0, 0),
            interval_ns: up_ns,
        }
    }

    /// Play until the window is over and drained.
    pub fn run(mut self) -> io::Result<Player<'tape, W>> {
        let played = self.links.network.enter().and_then(|()| self.play());
        self.links.network.leave()?;
        played.map(|()| self.player)
    }

    fn play(&mut self) -> io::Result<()> {
        for c in 0..self.links.len() {
            if !matches!(self.links.links[c], Link::Open) {
                self.player.lost(c, Failure::Connection, self.now());
            }
        }
        loop {
            let now = self.now();
            if self.shared.stop.load(Ordering::Relaxed) {
                self.player.stop();
            }
            self.player.issue(now);
            self.player.close_quiet(now);
            self.flush(now)?;
            if planted(Bug::DroppedInFlight) && self.player.closing(now) {
                return Ok(());
            }
            if self.player.finished(now) || now >= self.drain_end_ns {
                break;
            }
            if self.busy() {
                continue;
            }
            self.wait(now)?;
            self.keep_up()?;
        }
        if self.player.next_timeout_ns().is_some() {
            self.look_again()?;
        }
        let now = self.now();
        self.player.abandon(now);
        self.give_up(now);
        self.tell(now);
        self.end_interval(now, true);
        Ok(())
    }

    #[inline]
    fn now(&self) -> u64 {
        let now = if planted(Bug::WallClock) { self.clock.wall_ns() } else { self.clock.now_ns() };
        if planted(Bug::CoarseClock) { now - now % 4_000_000 } else { now }
    }

    /// Whether to go on at once: a write made room, as operations without a reply are complete
    /// when they are written. Every so often the sockets and the clock have their turn all the same.
    fn busy(&mut self) -> bool {
        self.rounds = if std::mem::take(&mut self.room) { self.rounds + 1 } else { 0 };
        self.rounds > 0 && !self.rounds.is_multiple_of(BUSY_ROUNDS)
    }

    /// Read what has come before anything is said to have no reply. A thread that stood still finds
    /// replies that came long ago, and one look at the sockets does not tell of all. They are answers;
    /// how late they are read is in their times.
    fn look_again(&mut self) -> io::Result<()> {
        for _ in 0..LOOKS {
            if !self.attend(Nap::NONE)? {
                break;
            }
        }
        Ok(())
    }

    /// At the end of the drain nothing may stay outstanding.
    fn give_up(&mut self, now: u64) {
        for c in 0..self.links.len() {
            if self.player.is_up(c) && !self.player.is_idle(c) {
                self.player.lost(c, Failure::Timeout, now);
                self.links.close(c, now);
            }
        }
    }

    /// Write what is to go out; `now` has just been read. All of a turn goes out together: a server
    /// that wakes for each write answers one by one, and each answer wakes this thread.
    fn flush(&mut self, mut now: u64) -> io::Result<()> {
        let mut next = self.player.next_unsent();
        while let Some(c) = next {
            self.write(c, now)?;
            next = self.player.next_unsent();
            if next.is_some() {
                now = self.now();
            }
        }
        Ok(())
    }

    fn write(&mut self, c: usize, now: u64) -> io::Result<()> {
        while self.player.has_outgoing(c) && !self.links.blocked[c] {
            if !matches!(self.links.links[c], Link::Open) {
                break;
            }
            let network = &mut self.links.network;
            let written = match self.player.outgoing(c, now) {
                Batch::Bytes(bytes) => network.write(c, bytes),
                Batch::Pieces(pieces) => network.write_pieces(c, pieces.as_slices()),
            };
            match written {
                Ok(bytes) => {
                    let now = if self.player.has_quiet(c) { self.now() } else { now };
                    self.room |= self.player.wrote(c, bytes, now);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.block(c)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.lose(c, Failure::Connection),
            }
        }
        Ok(())
    }

    fn block(&mut self, c: usize) -> io::Result<()> {
        self.player.blocked();
        self.links.blocked[c] = true;
        self.links.network.watch_writes(c, true)
    }

    fn lose(&mut self, c: usize, failure: Failure) {
        let now = self.now();
        self.player.lost(c, failure, now);
        self.close_spoilt(c, now);
    }

    fn close_spoilt(&mut self, c: usize, now: u64) {
        self.links.close_spoilt(c, now);
        (self.up_ns, self.keep_ns) = (now, 0);
    }

    fn wait(&mut self, now: u64) -> io::Result<()> {
        let nap = self.nap(now);
        self.attend(nap).map(|_| ())
    }

    /// Wait, and see to what is ready: whether anything was.
    fn attend(&mut self, nap: Nap) -> io::Result<bool> {
        let count = self.links.network.wait(nap)?;
        for n in 0..count {
            self.ready(self.links.network.ready(n))?;
            if self.timed && !planted(Bug::RepliesFirst) {
                self.keep_pace()?;
            }
        }
        Ok(count > 0)
    }

    /// Many replies may have come at once: what has become due meanwhile does not wait for all of them.
    #[inline]
    fn keep_pace(&mut self) -> io::Result<()> {
        let now = self.now();
        if self.player.is_due(now.saturating_sub(OVERDUE_NS)) {
            self.player.issue(now);
            self.flush(now)?;
        }
        Ok(())
    }

    /// Until the next thing that time brings.
    fn nap(&self, now: u64) -> Nap {
        if self.rounds > 0 {
            return Nap::NONE;
        }
        Nap {
            due_in_ns: self.player.next_due_ns().map(|due| due.saturating_sub(now)),
            longest_ns: LONGEST_SLEEP_NS.min(self.keep_ns.saturating_sub(now)),
        }
    }

    fn ready(&mut self, ready: Ready) -> io::Result<()> {
        let c = ready.connection;
        match self.links.links[c] {
            Link::Open if ready.writable => {
                self.links.blocked[c] = false;
                self.links.network.watch_writes(c, false)?;
                self.write(c, self.now())
            }
            Link::Open => {
                self.read(c);
                Ok(())
            }
            Link::Connecting => self.connected(c),
            Link::Closed { .. } => Ok(()),
        }
    }

    #[inline]
    fn read(&mut self, c: usize) {
        match self.links.network.read(c, self.player.incoming(c)) {
            Ok(0) => self.lose(c, Failure::Connection),
            Ok(bytes) => {
                if self.player.read(c, bytes, self.now()).is_err() {
                    self.close_spoilt(c, self.now());
                } else {
                    self.links.fruitless_ns[c] = 0;
                }
            }
            Err(error) if is_passing(&error) => {}
            Err(_) => self.lose(c, Failure::Connection),
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
