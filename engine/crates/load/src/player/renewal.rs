//! The part of a player that decides when connections are closed and opened again.

use std::ops::Range;

use super::Player;
use super::lifetimes::Lifetimes;
use super::work_slice::WorkSlice;
use crate::connection::Wire;

impl<'tape, W: Wire> Player<'tape, W> {
    /// The same with connections that are closed and opened again after a number of operations. Call it after
    /// `with_routing`. A prefill keeps its connections.
    pub fn with_reconnect_after(mut self, operations: u64) -> Player<'tape, W> {
        if matches!(self.work_slice, WorkSlice::Lane { .. }) {
            let (channels, connections) = (self.channels.len(), self.connections.len());
            self.lifetimes = Some(Box::new(Lifetimes::new(operations, channels, connections)));
        }
        self
    }

    /// Connections that have played their number of operations: close each, and open it again.
    pub fn next_worn_out(&mut self, now_ns: u64) -> Option<Range<usize>> {
        self.lifetimes.as_ref()?;
        if self.closing(now_ns) {
            return None;
        }
        loop {
            let lifetimes = self.lifetimes.as_mut()?;
            let channel = lifetimes.next(|channel| self.channels.is_idle(channel))?;
            let connections = self.channels.connections(channel);
            let mut unconfirmed = connections.clone();
            if let Some(c) = unconfirmed.find(|c| self.connections[*c].needs_barrier()) {
                // Its operations without a reply must arrive before it is closed.
                self.send_barrier(c);
                continue;
            }
            for c in connections.clone() {
                lifetimes.renewing[c] = true;
                self.channels.connection_lost(c);
            }
            self.begin_life(channel);
            return Some(connections);
        }
    }

    /// Whether a connection that was closed here is not open again yet.
    pub(super) fn is_renewing(&self) -> bool {
        self.lifetimes.as_ref().is_some_and(|lifetimes| lifetimes.renewing.contains(&true))
    }

    /// Operations on the channel of a connection have ended: after the last ones of its life it takes no more.
    pub(super) fn age(&mut self, c: usize, operations: usize) {
        let channel = self.channels.channel(c);
        let Some(lifetimes) = &mut self.lifetimes else { return };
        if lifetimes.operations_ended(channel, operations) {
            self.channels.open_to_operations(channel, false);
        }
    }

    /// The connections of a channel are being opened again, as asked or after a loss.
    pub(super) fn begin_life(&mut self, channel: usize) {
        let Some(lifetimes) = &mut self.lifetimes else { return };
        lifetimes.begin(channel);
        self.channels.open_to_operations(channel, true);
    }

    /// A connection is open again: count why it was closed.
    pub(super) fn count_opened(&mut self, c: usize) {
        let metrics = &mut self.recorder.metrics;
        match self.lifetimes.as_mut().is_some_and(|lifetimes| lifetimes.opened(c)) {
            true => metrics.renewed += 1,
            false => metrics.reconnects += 1,
        }
    }
}
