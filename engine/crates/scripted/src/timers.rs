//! The next reply to send, over all connections.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A connection whose first reply is due, by its slot and the generation of the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timer {
    pub due_ns: u64,
    /// Timers of the same time keep their order.
    pub order: u64,
    pub slot: usize,
    pub generation: u64,
}

#[derive(Default)]
pub struct TimerQueue {
    heap: BinaryHeap<Reverse<Timer>>,
    order: u64,
}

impl TimerQueue {
    pub fn with_capacity(entries: usize) -> TimerQueue {
        TimerQueue { heap: BinaryHeap::with_capacity(entries), order: 0 }
    }

    pub fn add(&mut self, due_ns: u64, slot: usize, generation: u64) {
        self.order += 1;
        self.heap.push(Reverse(Timer { due_ns, order: self.order, slot, generation }));
    }

    /// The next timer that is due.
    pub fn due(&mut self, now_ns: u64) -> Option<Timer> {
        self.next_ns().filter(|due_ns| *due_ns <= now_ns)?;
        self.heap.pop().map(|Reverse(timer)| timer)
    }

    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(timer)| timer.due_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_timers_come_in_order() {
        let mut timers = TimerQueue::default();
        for (due_ns, slot) in [(20, 0), (10, 1), (10, 2), (30, 3)] {
            timers.add(due_ns, slot, 0);
        }
        let slots: Vec<_> = std::iter::from_fn(|| timers.due(20)).map(|timer| timer.slot).collect();
        assert_eq!((slots, timers.next_ns()), (vec![1, 2, 0], Some(30)));
    }
}
