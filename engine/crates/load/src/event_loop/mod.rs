//! The loop of one thread: it sends the output of its player, reads replies and runs timers. The clock
//! and the network are type parameters.

mod connections;
mod shared;
mod timers;

use std::io;
use std::sync::atomic::Ordering;

use cachemark_injected_bugs::{Bug, injected};

use connections::ConnectionState;
pub use connections::ThreadConnections;
pub use shared::SharedState;

use crate::connection::{Text, Wire, WriteBatch};
use crate::io_traits::{Clock, Network, Ready, WaitLimit};
use crate::operation::Failure;
use crate::player::Player;

/// The maximum sleep, after which the stop flag is checked.
const MAX_SLEEP_NS: u64 = 20_000_000;
/// The maximum number of polls in `read_everything`. No operations are sent meanwhile, so it ends by
/// itself, unless a server sends without end.
const MAX_DRAIN_POLLS: usize = 4096;
/// Replies are read first, unless an operation is overdue by more than this. With a smaller value,
/// replies are read so much later that the p99 of the response time rises (by a tenth, in simulated
/// trials at half of the maximum rate).
const OVERDUE_NS: u64 = 20_000;
/// The maximum number of rounds of writes before the connections are polled.
const MAX_ROUNDS_WITHOUT_WAIT: u64 = 64;

/// Plays one window on one thread.
pub struct EventLoop<'run, 'tape, C, N, W = Text> {
    player: Player<'tape, W>,
    clock: C,
    connections: &'run mut ThreadConnections<N>,
    shared: &'run SharedState,
    drain_end_ns: u64,
    /// Operations have intended starts.
    is_timed: bool,
    wrote_noreply: bool,
    rounds_without_wait: u64,
    last_up_ns: u64,
    next_timer_ns: u64,
    reported_at_ns: u64,
    reported: (u64, u64),
    /// When the current interval started.
    interval_ns: u64,
}

impl<'run, 'tape, C: Clock, N: Network, W: Wire> EventLoop<'run, 'tape, C, N, W> {
    /// A loop that fails everything still in flight at `drain_end_ns`.
    pub fn new(
        player: Player<'tape, W>,
        clock: C,
        connections: &'run mut ThreadConnections<N>,
        shared: &'run SharedState,
        drain_end_ns: u64,
    ) -> EventLoop<'run, 'tape, C, N, W> {
        let last_up_ns = clock.now_ns();
        EventLoop {
            is_timed: player.is_timed(),
            player,
            clock,
            connections,
            shared,
            drain_end_ns,
            wrote_noreply: false,
            rounds_without_wait: 0,
            last_up_ns,
            next_timer_ns: 0,
            reported_at_ns: 0,
            reported: (0, 0),
            interval_ns: last_up_ns,
        }
    }

    /// Play until the window is over and everything has been answered.
    pub fn run(mut self) -> io::Result<Player<'tape, W>> {
        let played = self.connections.network.attach_thread().and_then(|()| self.play());
        self.connections.network.detach_thread()?;
        played.map(|()| self.player)
    }

    /// The same for a slice, in a thread that keeps the connections between slices.
    pub fn run_slice(mut self) -> io::Result<Player<'tape, W>> {
        self.player.look_at_lead_in(self.now());
        self.play().map(|()| self.player)
    }

    fn play(&mut self) -> io::Result<()> {
        for c in 0..self.connections.len() {
            if !matches!(self.connections.states[c], ConnectionState::Open) {
                self.player.connection_lost(c, Failure::Connection, self.now());
            }
        }
        loop {
            let now = self.now();
            if self.shared.stop.load(Ordering::Relaxed) {
                self.player.stop();
            }
            self.renew_connections(now);
            self.player.issue(now);
            self.player.send_barriers(now);
            self.flush(now)?;
            if injected(Bug::DroppedInFlight) && self.player.closing(now) {
                return Ok(());
            }
            if self.player.finished(now) || now >= self.drain_end_ns {
                break;
            }
            if self.continue_without_wait() {
                continue;
            }
            self.wait(now)?;
            self.run_timers()?;
        }
        if self.player.next_timeout_ns().is_some() {
            self.read_everything()?;
        }
        let now = self.now();
        self.player.abandon_queue(now);
        self.fail_outstanding(now);
        self.report_progress(now);
        self.end_interval(now, true);
        Ok(())
    }

    #[inline]
    fn now(&self) -> u64 {
        let now = if injected(Bug::WallClock) { self.clock.wall_ns() } else { self.clock.now_ns() };
        if injected(Bug::CoarseClock) { now - now % 4_000_000 } else { now }
    }

    /// Whether to continue without a wait: a write has completed operations without a reply, so that
    /// more can be sent. After a number of such rounds, sockets and timers are served anyway.
    fn continue_without_wait(&mut self) -> bool {
        self.rounds_without_wait =
            if std::mem::take(&mut self.wrote_noreply) { self.rounds_without_wait + 1 } else { 0 };
        self.rounds_without_wait > 0
            && !self.rounds_without_wait.is_multiple_of(MAX_ROUNDS_WITHOUT_WAIT)
    }

    /// Read everything that has arrived before operations are declared timed out. After a pause of this
    /// thread, replies may have arrived long ago, and one poll does not return all of them. They count
    /// as answers; their recorded times include the pause.
    fn read_everything(&mut self) -> io::Result<()> {
        for _ in 0..MAX_DRAIN_POLLS {
            if !self.wait_and_handle(WaitLimit::NONE)? {
                break;
            }
        }
        Ok(())
    }

    /// At the end of the drain, fail everything that is in flight.
    fn fail_outstanding(&mut self, now: u64) {
        for c in 0..self.connections.len() {
            if self.player.is_up(c) && !self.player.is_idle(c) {
                self.player.connection_lost(c, Failure::Timeout, now);
                self.connections.close(c, now);
            }
        }
    }

    /// Send all output; `now` has just been read. All operations of a round are sent together: a server
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
        while self.player.has_output(c) && !self.connections.blocked[c] {
            if !matches!(self.connections.states[c], ConnectionState::Open) {
                break;
            }
            let network = &mut self.connections.network;
            let written = match self.player.output(c, now) {
                WriteBatch::Bytes(bytes) => network.write(c, bytes),
                WriteBatch::IoSlices(slices) => network.write_vectored(c, slices.as_slices()),
            };
            match written {
                Ok(bytes) => {
                    let now = if self.player.has_quiet(c) { self.now() } else { now };
                    self.wrote_noreply |= self.player.wrote(c, bytes, now);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.block_writes(c)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.lose_connection(c, Failure::Connection),
            }
        }
        Ok(())
    }

    fn block_writes(&mut self, c: usize) -> io::Result<()> {
        self.player.blocked();
        self.connections.blocked[c] = true;
        self.connections.network.watch_writable(c, true)
    }

    fn lose_connection(&mut self, c: usize, failure: Failure) {
        let now = self.now();
        self.player.connection_lost(c, failure, now);
        self.close_failed(c, now);
    }

    fn close_failed(&mut self, c: usize, now: u64) {
        self.shared.lost.fetch_add(1, Ordering::Relaxed);
        self.connections.close_failed(c, now);
        (self.last_up_ns, self.next_timer_ns) = (now, 0);
    }

    fn wait(&mut self, now: u64) -> io::Result<()> {
        let limit = self.wait_limit(now);
        self.wait_and_handle(limit).map(|_| ())
    }

    /// Wait, and handle the events. True if there were any.
    fn wait_and_handle(&mut self, limit: WaitLimit) -> io::Result<bool> {
        let count = self.connections.network.wait(limit)?;
        for n in 0..count {
            self.ready(self.connections.network.ready(n))?;
            if self.is_timed && !injected(Bug::RepliesFirst) {
                self.issue_overdue()?;
            }
        }
        Ok(count > 0)
    }

    /// Many replies may arrive at once: operations that become due meanwhile do not wait for all of
    /// them to be read.
    #[inline]
    fn issue_overdue(&mut self) -> io::Result<()> {
        let now = self.now();
        if self.player.is_due(now.saturating_sub(OVERDUE_NS)) {
            self.player.issue(now);
            self.flush(now)?;
        }
        Ok(())
    }

    /// How long to wait for events.
    fn wait_limit(&self, now: u64) -> WaitLimit {
        if self.rounds_without_wait > 0 {
            return WaitLimit::NONE;
        }
        WaitLimit {
            due_in_ns: self.player.next_due_ns().map(|due| due.saturating_sub(now)),
            max_ns: MAX_SLEEP_NS.min(self.next_timer_ns.saturating_sub(now)),
        }
    }

    fn ready(&mut self, ready: Ready) -> io::Result<()> {
        let c = ready.connection;
        match self.connections.states[c] {
            ConnectionState::Open if ready.writable => {
                self.connections.blocked[c] = false;
                self.connections.network.watch_writable(c, false)?;
                self.write(c, self.now())
            }
            ConnectionState::Open => {
                self.read(c);
                Ok(())
            }
            ConnectionState::Connecting { .. } => self.connected(c),
            ConnectionState::Closed { .. } => Ok(()),
        }
    }

    #[inline]
    fn read(&mut self, c: usize) {
        match self.connections.network.read(c, self.player.read_buffer(c)) {
            Ok(0) => self.lose_connection(c, Failure::Connection),
            Ok(bytes) => {
                if self.player.read(c, bytes, self.now()).is_err() {
                    self.close_failed(c, self.now());
                } else {
                    self.connections.reconnect_delay_ns[c] = 0;
                }
            }
            Err(error) if is_transient(&error) => {}
            Err(_) => self.lose_connection(c, Failure::Connection),
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
