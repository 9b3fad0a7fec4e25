//! The timers of an event loop: timeouts, reconnects and progress reports.

use std::io;
use std::sync::atomic::Ordering;

use super::EventLoop;
use super::connections::{ConnectionState, RECONNECT_MAX_NS, RECONNECT_MIN_NS};
use crate::connection::Wire;
use crate::io_traits::{Clock, Network};

/// The interval of progress reports.
const PROGRESS_EVERY_NS: u64 = 50_000_000;
/// After this many timeouts with all connections down, give up the rest of a closed loop, or the operations of an
/// open loop whose schedule is over. Until then an open loop goes on, because its operations are due even without
/// a server, and the server may come back.
const MAX_DOWN_TIMEOUTS: u64 = 3;
/// A connect is given up after this many timeouts. It may take several steps: a name, a handshake, a login.
const MAX_CONNECT_TIMEOUTS: u64 = 4;

impl<C: Clock, N: Network, W: Wire> EventLoop<'_, '_, C, N, W> {
    pub(super) fn connected(&mut self, c: usize) -> io::Result<()> {
        if self.connections.network.finish_connect(c).is_err() {
            self.connect_failed(c);
            return Ok(());
        }
        self.connections.network.watch_writable(c, false)?;
        self.connections.states[c] = ConnectionState::Open;
        self.player.connection_restored(c);
        Ok(())
    }

    fn connect_failed(&mut self, c: usize) {
        self.player.connect_failed();
        self.connections.network.close(c);
        self.retry_later(c, RECONNECT_MAX_NS);
    }

    fn retry_later(&mut self, c: usize, delay_ns: u64) {
        let retry_at_ns = self.now() + delay_ns;
        let delay_ns = (delay_ns * 2).min(RECONNECT_MAX_NS);
        self.connections.states[c] = ConnectionState::Closed { retry_at_ns, delay_ns };
        self.next_timer_ns = 0;
    }

    /// Handle timeouts, reconnects and progress. This looks at every connection, so it runs only when
    /// the next timer is due.
    pub(super) fn run_timers(&mut self) -> io::Result<()> {
        let now = self.now();
        if now < self.next_timer_ns {
            return Ok(());
        }
        if self.player.any_up() {
            self.last_up_ns = now;
        }
        self.expire(now)?;
        if now >= self.last_sends_ns() {
            self.player.abandon_queue(now);
        }
        for c in 0..self.connections.len() {
            match self.connections.states[c] {
                ConnectionState::Closed { retry_at_ns, delay_ns } if retry_at_ns <= now => {
                    self.reconnect(c, delay_ns);
                }
                ConnectionState::Connecting { until_ns } if until_ns <= now => {
                    self.connect_failed(c);
                }
                _ => {}
            }
        }
        if now - self.reported_at_ns >= PROGRESS_EVERY_NS {
            self.report_progress(now);
        }
        if !self.player.any_up()
            && now - self.last_up_ns > MAX_DOWN_TIMEOUTS * self.player.timeout_ns()
        {
            self.player.give_up(now);
        }
        self.next_timer_ns = self.next_timer_ns(now);
        Ok(())
    }

    /// Fail the operations that have timed out.
    fn expire(&mut self, now: u64) -> io::Result<()> {
        if self.player.next_timeout_ns().is_none_or(|at_ns| at_ns > now) {
            return Ok(());
        }
        self.read_everything()?;
        let connections = &mut *self.connections;
        self.player.expire(now, |c| connections.close(c, now));
        Ok(())
    }

    /// No operation is sent after this time, so that each one has a full timeout before the drain ends.
    fn last_sends_ns(&self) -> u64 {
        self.drain_end_ns.saturating_sub(self.player.timeout_ns())
    }

    /// The next time at which a timer may be due. A lost connection resets it. Operations that are sent
    /// from now on time out later.
    fn next_timer_ns(&self, now: u64) -> u64 {
        let timeout = self.player.next_timeout_ns().unwrap_or(now + self.player.timeout_ns());
        let reconnects = self.connections.states.iter().filter_map(|state| match state {
            ConnectionState::Closed { retry_at_ns, .. } => Some(*retry_at_ns),
            ConnectionState::Connecting { until_ns } => Some(*until_ns),
            ConnectionState::Open => None,
        });
        let last_sends_ns = Some(self.last_sends_ns()).filter(|at_ns| *at_ns > now);
        let others = reconnects.chain(last_sends_ns);
        others.fold(timeout.min(self.reported_at_ns + PROGRESS_EVERY_NS), u64::min)
    }

    fn reconnect(&mut self, c: usize, delay_ns: u64) {
        match self.connections.network.start_connect(c) {
            Ok(()) => {
                let until_ns = self.now() + MAX_CONNECT_TIMEOUTS * self.player.timeout_ns();
                self.connections.states[c] = ConnectionState::Connecting { until_ns };
            }
            Err(_) => {
                self.player.connect_failed();
                self.retry_later(c, delay_ns);
            }
        }
    }

    /// Close the connections that have played their number of operations, and open them again.
    pub(super) fn renew_connections(&mut self, now: u64) {
        while let Some(connections) = self.player.next_worn_out(now) {
            for c in connections {
                self.connections.close(c, now);
                self.reconnect(c, RECONNECT_MIN_NS);
            }
            (self.last_up_ns, self.next_timer_ns) = (now, 0);
        }
    }

    pub(super) fn report_progress(&mut self, now: u64) {
        let (ok, failed) = self.player.progress();
        self.shared.ok.fetch_add(ok - self.reported.0, Ordering::Relaxed);
        self.shared.failed.fetch_add(failed - self.reported.1, Ordering::Relaxed);
        self.reported = (ok, failed);
        self.reported_at_ns = now;
        self.end_interval(now, false);
    }

    /// Hand over the metrics of an interval when it is due. Intervals have about the same length.
    pub(super) fn end_interval(&mut self, now: u64, last: bool) {
        let Some(intervals) = &self.shared.intervals else { return };
        let length_ns = now - self.interval_ns;
        let due = length_ns + PROGRESS_EVERY_NS / 2 >= intervals.every_ns;
        if (due || last) && self.player.hand_over_metrics(intervals, length_ns) {
            self.interval_ns = now;
            self.reported = (0, 0);
        }
    }
}
