//! Which connections may take another operation. Where several servers are used, each connection is
//! a set of them, one to each server, side by side; its depth is that of the set.

/// The connections of a player and what is under way on them.
pub(crate) struct Channels {
    servers: usize,
    depth: usize,
    /// By connection.
    up: Vec<bool>,
    /// By set: operations under way.
    in_flight: Vec<usize>,
    /// Sets that may have got room since they were last looked at, each once.
    candidates: Vec<usize>,
    is_candidate: Vec<bool>,
}

impl Channels {
    /// So many sets, all of them up and with room.
    pub(crate) fn new(channels: usize, servers: usize, depth: usize) -> Channels {
        Channels {
            servers,
            depth,
            up: vec![true; channels * servers],
            in_flight: vec![0; channels],
            // The last is taken first.
            candidates: (0..channels).rev().collect(),
            is_candidate: vec![true; channels],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.in_flight.len()
    }

    /// The first connection of a set.
    #[inline]
    pub(crate) fn first_connection(&self, channel: usize) -> usize {
        channel * self.servers
    }

    /// Whether a set is up, all of it, and may have another operation under way; `think_queue` take the
    /// room of one each.
    #[inline]
    pub(crate) fn has_room(&self, channel: usize, think_queue: usize) -> bool {
        let first = self.first_connection(channel);
        self.in_flight[channel] + think_queue < self.depth
            && self.up[first..first + self.servers].iter().all(|up| *up)
    }

    /// A set that may have got room since it was last taken from here.
    #[inline]
    pub(crate) fn next_candidate(&mut self) -> Option<usize> {
        let channel = self.candidates.pop()?;
        self.is_candidate[channel] = false;
        Some(channel)
    }

    #[inline]
    fn add_candidate(&mut self, channel: usize) {
        if !std::mem::replace(&mut self.is_candidate[channel], true) {
            self.candidates.push(channel);
        }
    }

    #[inline]
    pub(crate) fn operation_began(&mut self, channel: usize) {
        self.in_flight[channel] += 1;
    }

    /// A connection took an operation that nobody asked for.
    pub(crate) fn operation_began_on(&mut self, c: usize) {
        self.operation_began(c / self.servers);
    }

    /// So many operations of a connection's set are over.
    #[inline]
    pub(crate) fn operations_ended(&mut self, c: usize, operations: usize) {
        let channel = if self.servers == 1 { c } else { c / self.servers };
        self.in_flight[channel] -= operations;
        if operations > 0 {
            self.add_candidate(channel);
        }
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

    /// Whether some set could be used.
    pub(crate) fn any_up(&self) -> bool {
        self.up.chunks(self.servers).any(|channel| channel.iter().all(|up| *up))
    }
}
