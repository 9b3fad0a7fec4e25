//! What time brings to a loop: time-outs, connections that are begun again, what is told of the run.

use std::io;
use std::sync::atomic::Ordering;

use super::EventLoop;
use super::connections::{Link, RECONNECT_LONGEST_NS};
use crate::connection::Wire;
use crate::io_traits::{Clock, Network};

/// Progress is told this often.
const PROGRESS_EVERY_NS: u64 = 50_000_000;
/// A window is given up when no connection has been up for so many time-outs.
const DOWN_TIMEOUTS: u64 = 3;

impl<C: Clock, N: Network, W: Wire> EventLoop<'_, '_, C, N, W> {
    pub(super) fn connected(&mut self, c: usize) -> io::Result<()> {
        if self.links.network.begun(c).is_err() {
            self.links.network.close(c);
            self.put_off(c, RECONNECT_LONGEST_NS);
            return Ok(());
        }
        self.links.network.watch_writes(c, false)?;
        self.links.links[c] = Link::Open;
        self.player.restored(c);
        Ok(())
    }

    fn put_off(&mut self, c: usize, wait_ns: u64) {
        let again_ns = self.now() + wait_ns;
        let wait_ns = (wait_ns * 2).min(RECONNECT_LONGEST_NS);
        self.links.links[c] = Link::Closed { again_ns, wait_ns };
        self.keep_ns = 0;
    }

    /// What time brings: timeouts, reconnects, progress. It is looked for only when it may be there,
    /// as that takes a look at every connection.
    pub(super) fn keep_up(&mut self) -> io::Result<()> {
        let now = self.now();
        if now < self.keep_ns {
            return Ok(());
        }
        if self.player.any_up() {
            self.up_ns = now;
        }
        self.expire(now)?;
        if now >= self.last_sends_ns() {
            self.player.abandon(now);
        }
        for c in 0..self.links.len() {
            if let Link::Closed { again_ns, wait_ns } = self.links.links[c]
                && again_ns <= now
            {
                self.reopen(c, wait_ns);
            }
        }
        if now - self.told_ns >= PROGRESS_EVERY_NS {
            self.tell(now);
        }
        if !self.player.any_up() && now - self.up_ns > DOWN_TIMEOUTS * self.player.timeout_ns() {
            self.player.stop();
        }
        self.keep_ns = self.next_keep_ns(now);
        Ok(())
    }

    /// Fail what is over its time and has no reply.
    fn expire(&mut self, now: u64) -> io::Result<()> {
        if self.player.next_timeout_ns().is_none_or(|at_ns| at_ns > now) {
            return Ok(());
        }
        self.look_again()?;
        let links = &mut *self.links;
        self.player.expire(now, |c| links.close(c, now));
        Ok(())
    }

    /// Nothing is sent after this, so that what was sent has its whole time to be answered in.
    fn last_sends_ns(&self) -> u64 {
        self.drain_end_ns.saturating_sub(self.player.timeout_ns())
    }

    /// Nothing is to be done for time's sake before this instant, unless a connection is lost: what
    /// is sent from now on times out later.
    fn next_keep_ns(&self, now: u64) -> u64 {
        let timeout = self.player.next_timeout_ns().unwrap_or(now + self.player.timeout_ns());
        let reconnects = self.links.links.iter().filter_map(|link| match link {
            Link::Closed { again_ns, .. } => Some(*again_ns),
            _ => None,
        });
        let last_sends_ns = Some(self.last_sends_ns()).filter(|at_ns| *at_ns > now);
        let others = reconnects.chain(last_sends_ns);
        others.fold(timeout.min(self.told_ns + PROGRESS_EVERY_NS), u64::min)
    }

    fn reopen(&mut self, c: usize, wait_ns: u64) {
        match self.links.network.begin(c) {
            Ok(()) => self.links.links[c] = Link::Connecting,
            Err(_) => self.put_off(c, wait_ns),
        }
    }

    pub(super) fn tell(&mut self, now: u64) {
        let (ok, failed) = self.player.progress();
        self.shared.ok.fetch_add(ok - self.told.0, Ordering::Relaxed);
        self.shared.failed.fetch_add(failed - self.told.1, Ordering::Relaxed);
        self.told = (ok, failed);
        self.told_ns = now;
        self.end_interval(now, false);
    }

    /// Hand over what was recorded, once it is time to: intervals are of about one length.
    pub(super) fn end_interval(&mut self, now: u64, last: bool) {
        let Some(intervals) = &self.shared.intervals else { return };
        let length_ns = now - self.interval_ns;
        let due = length_ns + PROGRESS_EVERY_NS / 2 >= intervals.every_ns;
        if (due || last) && self.player.hand_over(intervals, length_ns) {
            self.interval_ns = now;
            self.told = (0, 0);
        }
    }
}
