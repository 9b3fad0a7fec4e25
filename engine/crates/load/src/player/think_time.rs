//! Think times: callers of a closed loop that wait before their next operation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cachemark_tape::Op;

/// Operations whose think time is not over, by their intended start. Each occupies the place of one
/// operation on its channel, because its caller does nothing else meanwhile.
pub(crate) struct ThinkQueue {
    /// (intended start, index into `ops`): a heap of plain numbers.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    ops: Vec<Option<(usize, Op)>>,
    free: Vec<usize>,
    waiting_by_channel: Vec<usize>,
}

impl ThinkQueue {
    /// An empty queue with storage for `depth` operations per channel, so that nothing is allocated
    /// later.
    pub(crate) fn new(channels: usize, depth: usize) -> ThinkQueue {
        let capacity = channels * depth;
        ThinkQueue {
            due: BinaryHeap::with_capacity(capacity),
            ops: vec![None; capacity],
            free: (0..capacity).collect(),
            waiting_by_channel: vec![0; channels],
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// How many callers think on a channel.
    #[inline]
    pub(crate) fn waiting_on(&self, channel: usize) -> usize {
        self.waiting_by_channel[channel]
    }

    /// A caller thinks until `due_ns`. The channel must have room.
    pub(crate) fn start(&mut self, channel: usize, op: Op, due_ns: u64) {
        let slot = self.free.pop().expect("a channel with room has a free slot");
        self.ops[slot] = Some((channel, op));
        self.due.push(Reverse((due_ns, slot)));
        self.waiting_by_channel[channel] += 1;
    }

    /// Callers do not think in a pause: all think times end this much later.
    pub(crate) fn pause(&mut self, length_ns: u64) {
        let mut due = std::mem::take(&mut self.due).into_vec();
        due.iter_mut().for_each(|Reverse((due_ns, _))| *due_ns += length_ns);
        self.due = due.into();
    }

    /// When the next think time ends.
    #[inline]
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    /// An operation whose think time is over: its channel, the operation, and its intended start.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<(usize, Op, u64)> {
        let Reverse((due_ns, slot)) = *self.due.peek()?;
        if due_ns > now_ns {
            return None;
        }
        self.due.pop();
        self.free.push(slot);
        let (channel, op) = self.ops[slot].take().expect("what is due has an operation");
        self.waiting_by_channel[channel] -= 1;
        Some((channel, op, due_ns))
    }
}
