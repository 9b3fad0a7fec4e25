//! Channels: which of them can take another operation. A channel is one connection to each server. With
//! one server, channels and connections are the same. The depth counts operations per channel.

use std::ops::Range;

use crate::options::Refill;

/// The channels of a player.
pub(crate) struct Channels {
    servers: usize,
    depth: usize,
    refill: Refill,
    /// Index: connection.
    up: Vec<bool>,
    /// Index: channel.
    in_flight: Vec<usize>,
    /// Index: channel. False while its last operations end before its connections are closed.
    is_open: Vec<bool>,
    /// Channels that may have become free since they were last checked, each at most once.
    candidates: Vec<usize>,
    is_candidate: Vec<bool>,
}

impl Channels {
    /// Channels that are all up and free.
    pub(crate) fn new(channels: usize, servers: usize, depth: usize, refill: Refill) -> Channels {
        Channels {
            servers,
            depth,
            refill,
            up: vec![true; channels * servers],
            in_flight: vec![0; channels],
            is_open: vec![true; channels],
            // `next_candidate` takes from the end.
            candidates: (0..channels).rev().collect(),
            is_candidate: vec![true; channels],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.in_flight.len()
    }

    /// The first connection of a channel.
    #[inline]
    pub(crate) fn first_connection(&self, channel: usize) -> usize {
        channel * self.servers
    }

    /// The connections of a channel.
    pub(crate) fn connections(&self, channel: usize) -> Range<usize> {
        let first = self.first_connection(channel);
        first..first + self.servers
    }

    /// How many more operations a channel can take: none unless it is open and all its connections are up.
    /// Each of `thinking` callers on the channel occupies the place of one.
    #[inline]
    pub(crate) fn room(&self, channel: usize, thinking: usize) -> usize {
        match self.is_open[channel] && self.up[self.connections(channel)].iter().all(|up| *up) {
            true => self.depth.saturating_sub(self.in_flight[channel] + thinking),
            false => 0,
        }
    }

    /// A channel that may have become free since it was last returned here.
    #[inline]
    pub(crate) fn next_candidate(&mut self) -> Option<usize> {
        let channel = self.candidates.pop()?;
        self.is_candidate[channel] = false;
        Some(channel)
    }

    /// The channel of a connection.
    #[inline]
    pub(crate) fn channel(&self, c: usize) -> usize {
        if self.servers == 1 { c } else { c / self.servers }
    }

    /// Every channel may be free.
    pub(crate) fn check_all(&mut self) {
        (0..self.len()).rev().for_each(|channel| self.add_candidate(channel));
    }

    #[inline]
    fn add_candidate(&mut self, channel: usize) {
        if self.refill == Refill::All && self.in_flight[channel] > 0 {
            return;
        }
        if !std::mem::replace(&mut self.is_candidate[channel], true) {
            self.candidates.push(channel);
        }
    }

    #[inline]
    pub(crate) fn operation_began(&mut self, channel: usize) {
        self.in_flight[channel] += 1;
    }

    /// A connection took a barrier, which no caller asked for.
    pub(crate) fn operation_began_on(&mut self, c: usize) {
        self.operation_began(c / self.servers);
    }

    /// Operations on the channel of a connection have ended.
    #[inline]
    pub(crate) fn operations_ended(&mut self, c: usize, operations: usize) {
        let channel = self.channel(c);
        self.in_flight[channel] -= operations;
        if operations > 0 {
            self.add_candidate(channel);
        }
    }

    pub(crate) fn is_idle(&self, channel: usize) -> bool {
        self.in_flight[channel] == 0
    }

    /// Whether a channel takes new operations.
    pub(crate) fn open_to_operations(&mut self, channel: usize, is_open: bool) {
        self.is_open[channel] = is_open;
    }

    pub(crate) fn is_up(&self, c: usize) -> bool {
        self.up[c]
    }

    pub(crate) fn connection_lost(&mut self, c: usize) {
        self.up[c] = false;
    }

    pub(crate) fn connection_restored(&mut self, c: usize) {
        self.up[c] = true;
        self.add_candidate(c / self.servers);
    }

    /// Whether at least one channel can be used.
    pub(crate) fn any_up(&self) -> bool {
        self.up.chunks(self.servers).any(|channel| channel.iter().all(|up| *up))
    }
}
