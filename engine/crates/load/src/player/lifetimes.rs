//! Connections that are closed on purpose after a number of operations, and opened again.

/// How long the channels of a player live, in operations.
pub(crate) struct Lifetimes {
    operations: u64,
    /// Index: channel. Operations that have ended since its connections were opened.
    ended: Vec<u64>,
    /// Channels at the end of their life. Operations may still be in flight on them.
    worn_out: Vec<usize>,
    /// Index: connection. It was closed here, and is not open again yet.
    pub(crate) renewing: Vec<bool>,
}

impl Lifetimes {
    pub(crate) fn new(operations: u64, channels: usize, connections: usize) -> Lifetimes {
        Lifetimes {
            operations,
            ended: vec![0; channels],
            worn_out: Vec::with_capacity(channels),
            renewing: vec![false; connections],
        }
    }

    /// Operations on a channel have ended. True if it has reached the end of its life with them.
    pub(crate) fn operations_ended(&mut self, channel: usize, operations: usize) -> bool {
        let before = self.ended[channel];
        self.ended[channel] += operations as u64;
        let worn_out = before < self.operations && self.ended[channel] >= self.operations;
        if worn_out {
            self.worn_out.push(channel);
        }
        worn_out
    }

    /// A worn-out channel without operations in flight.
    pub(crate) fn next(&self, is_idle: impl Fn(usize) -> bool) -> Option<usize> {
        self.worn_out.iter().copied().find(|channel| is_idle(*channel))
    }

    /// The life of a channel begins.
    pub(crate) fn begin(&mut self, channel: usize) {
        self.ended[channel] = 0;
        self.worn_out.retain(|other| *other != channel);
    }

    /// A connection is open. True if it had been closed here.
    pub(crate) fn opened(&mut self, c: usize) -> bool {
        std::mem::replace(&mut self.renewing[c], false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_ends_once_and_begins_again() {
        let mut lifetimes = Lifetimes::new(3, 2, 2);
        assert!(!lifetimes.operations_ended(1, 2));
        assert!(lifetimes.operations_ended(1, 2));
        assert!(!lifetimes.operations_ended(1, 1), "it is listed already");
        assert_eq!(lifetimes.next(|_| false), None);
        assert_eq!(lifetimes.next(|_| true), Some(1));
        lifetimes.renewing[1] = true;
        lifetimes.begin(1);
        assert_eq!(lifetimes.next(|_| true), None);
        assert!(lifetimes.opened(1));
        assert!(!lifetimes.opened(1), "what is lost later was not closed here");
        assert!(!lifetimes.operations_ended(1, 2));
        assert!(lifetimes.operations_ended(1, 1));
    }
}
