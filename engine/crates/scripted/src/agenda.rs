//! What is to be sent next, over all connections.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A connection whose foremost reply is due, and the life of that connection's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub due_ns: u64,
    /// Entries of one instant keep their order.
    pub order: u64,
    pub line: usize,
    pub life: u64,
}

#[derive(Default)]
pub struct Agenda {
    heap: BinaryHeap<Reverse<Entry>>,
    order: u64,
}

impl Agenda {
    pub fn with_room(entries: usize) -> Agenda {
        Agenda { heap: BinaryHeap::with_capacity(entries), order: 0 }
    }

    pub fn add(&mut self, due_ns: u64, line: usize, life: u64) {
        self.order += 1;
        self.heap.push(Reverse(Entry { due_ns, order: self.order, line, life }));
    }

    /// The next entry that is due by now.
    pub fn due(&mut self, now_ns: u64) -> Option<Entry> {
        self.next_ns().filter(|due_ns| *due_ns <= now_ns)?;
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(entry)| entry.due_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_comes_in_order() {
        let mut agenda = Agenda::default();
        for (due_ns, line) in [(20, 0), (10, 1), (10, 2), (30, 3)] {
            agenda.add(due_ns, line, 0);
        }
        let lines: Vec<_> = std::iter::from_fn(|| agenda.due(20)).map(|entry| entry.line).collect();
        assert_eq!((lines, agenda.next_ns()), (vec![1, 2, 0], Some(30)));
    }
}
