//! Which connections may take another operation. Where several servers are used, each connection is
//! a set of them, one to each server, side by side; its depth is that of the set.

/// The connections of a player and what is under way on them.
pub(crate) struct Sets {
    servers: usize,
    depth: usize,
    /// By connection.
    up: Vec<bool>,
    /// By set: operations under way.
    busy: Vec<usize>,
    /// Sets that may have got room since they were last looked at, each once.
    fresh: Vec<usize>,
    is_fresh: Vec<bool>,
}

impl Sets {
    /// So many sets, all of them up and with room.
    pub(crate) fn new(sets: usize, servers: usize, depth: usize) -> Sets {
        Sets {
            servers,
            depth,
            up: vec![true; sets * servers],
            busy: vec![0; sets],
            // The last is taken first.
            fresh: (0..sets).rev().collect(),
            is_fresh: vec![true; sets],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.busy.len()
    }

    /// The first connection of a set.
    #[inline]
    pub(crate) fn first(&self, set: usize) -> usize {
        set * self.servers
    }

    /// Whether a set is up, all of it, and may have another operation under way; `thinking` take the
    /// room of one each.
    #[inline]
    pub(crate) fn has_room(&self, set: usize, thinking: usize) -> bool {
        let first = self.first(set);
        self.busy[set] + thinking < self.depth
            && self.up[first..first + self.servers].iter().all(|up| *up)
    }

    /// A set that may have got room since it was last taken from here.
    #[inline]
    pub(crate) fn next_fresh(&mut self) -> Option<usize> {
        let set = self.fresh.pop()?;
        self.is_fresh[set] = false;
        Some(set)
    }

    #[inline]
    fn freshen(&mut self, set: usize) {
        if !std::mem::replace(&mut self.is_fresh[set], true) {
            self.fresh.push(set);
        }
    }

    #[inline]
    pub(crate) fn began(&mut self, set: usize) {
        self.busy[set] += 1;
    }

    /// A connection took an operation that nobody asked for.
    pub(crate) fn began_on(&mut self, c: usize) {
        self.began(c / self.servers);
    }

    /// So many operations of a connection's set are over.
    #[inline]
    pub(crate) fn ended(&mut self, c: usize, operations: usize) {
        let set = if self.servers == 1 { c } else { c / self.servers };
        self.busy[set] -= operations;
        if operations > 0 {
            self.freshen(set);
        }
    }

    pub(crate) fn is_up(&self, c: usize) -> bool {
        self.up[c]
    }

    pub(crate) fn lost(&mut self, c: usize) {
        self.up[c] = false;
    }

    pub(crate) fn restored(&mut self, c: usize) {
        self.up[c] = true;
        self.freshen(c / self.servers);
    }

    /// Whether some set could be used.
    pub(crate) fn any_up(&self) -> bool {
        self.up.chunks(self.servers).any(|set| set.iter().all(|up| *up))
    }
}
